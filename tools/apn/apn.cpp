// apn: automatic preserve_none. A pass for clang 19 that gives the calling convention of ACO_SWITCHING
// (aco/calling_convention.h) to the functions around those that have it.
//
// SPDX-License-Identifier: Apache-2.0
//
// A function that switches destroys all registers. A caller that keeps values in callee-saved registers has saved them
// for nothing, and so has its caller. The pass begins with the functions that already have the convention, are named in
// a file, or contain a switch, and goes from callee to caller until it finds nothing more. It stops at a function if it
// cannot see or rewrite all its calls: why_not() has every reason. It can also make them return by pop and jump, as
// ACO_SWITCHING_RETURNS does (aco/returns.h). How to use it: README.md.
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Triple.h"

#include <cstdlib>
#include <string>

using namespace llvm;

namespace {

// Options: -mllvm -apn-…. A linker that loads the plugin after it has read its options takes them from the environment.
cl::opt<std::string> list_option("apn-list",
                                 cl::desc("File of names of functions that have preserve_none in every unit"));
cl::opt<std::string> report_option("apn-report", cl::desc("File to which the decisions are added; -: stderr"));
cl::opt<bool> explicit_option("apn-explicit", cl::desc("Begin with marked and named functions only"));
cl::opt<std::string> returns_option("apn-returns", cl::desc("Which of the functions return by pop and jump: mixed "
                                                            "(those whose returns differ with the way), or all"));

std::string setting(const cl::opt<std::string> &option, const char *variable)
{
    if (!option.empty())
        return option;
    const char *value = std::getenv(variable);
    return value ? value : "";
}

constexpr CallingConv::ID SWITCHING = CallingConv::PreserveNone;
// With more, the convention takes registers that prologues use (r11 and rax on x86-64).
constexpr size_t PARAMETERS_AT_MOST = 10;

std::string quoted(const Value &value)
{
    return "`" + value.getName().str() + "`";
}

// Who uses the address of a function, in words.
std::string named_user(const User &user)
{
    if (auto *instruction = dyn_cast<Instruction>(&user))
        return "in " + quoted(*instruction->getFunction());
    if (user.hasName())
        return "by " + quoted(user);
    for (const User *outer : user.users())
        if (std::string name = named_user(*outer); !name.empty())
            return name;
    return "";
}

// Does an inline asm clobber all of these?
bool clobbers(const CallBase &call, std::initializer_list<StringRef> registers)
{
    auto *code = dyn_cast<InlineAsm>(call.getCalledOperand());
    if (!code)
        return false;
    StringSet<> clobbered;
    for (const InlineAsm::ConstraintInfo &constraint : code->ParseConstraints())
        if (constraint.Type == InlineAsm::isClobber)
            for (const std::string &name : constraint.Codes)
                clobbered.insert(name);
    return all_of(registers, [&](StringRef name) { return clobbered.contains(name); });
}

// No asm but a switch makes the compiler give up all of these. (A base pointer, which may be missing, is not among
// them.)
bool is_switch(const CallBase &call)
{
    return Triple(call.getModule()->getTargetTriple()).isAArch64()
               ? clobbers(call, {"{x20}", "{x22}", "{x24}", "{x26}", "{x28}"})
               : clobbers(call, {"{r12}", "{r13}", "{r14}", "{r15}"});
}

// If the frame is aligned more than the stack, it needs a base pointer, which this convention does not preserve. Which
// registers are spilled decides that later.
bool may_need_base_pointer(const Instruction &instruction)
{
    if (auto *local = dyn_cast<AllocaInst>(&instruction))
        return !local->isStaticAlloca();
    auto *call = dyn_cast<CallBase>(&instruction);
    return call && (clobbers(*call, {"{rsp}"}) || clobbers(*call, {"{sp}"}));
}

bool calls_switch(const Instruction &instruction)
{
    auto *call = dyn_cast<CallBase>(&instruction);
    return call && is_switch(*call);
}

// The jump that marked functions share, as in aco/returns.h, which a unit may have included.
const char *const RETURN_THUNK = R"(
.ifndef __x86_return_thunk
.pushsection .text.__x86_return_thunk, "axG", @progbits, __x86_return_thunk, comdat
.weak __x86_return_thunk
.hidden __x86_return_thunk
.type __x86_return_thunk, @function
.balign 16
__x86_return_thunk:
.cfi_startproc
popq %rcx
.cfi_def_cfa_offset 0
.cfi_register %rip, %rcx
notrack jmp *%rcx
.cfi_endproc
.size __x86_return_thunk, . - __x86_return_thunk
.popsection
.endif
)";

// Does no result stand in rcx? It takes the third word, which no C function returns in registers.
bool leaves_rcx(const Type &result)
{
    auto *parts = dyn_cast<StructType>(&result);
    if (!parts)
        return !result.isArrayTy() && (!result.isIntegerTy() || result.getIntegerBitWidth() <= 128);
    return parts->getNumElements() <= 2 && all_of(parts->elements(), [](const Type *part) {
               return part->isPointerTy() || part->isFloatingPointTy() || part->isVectorTy() ||
                      (part->isIntegerTy() && part->getIntegerBitWidth() <= 64);
           });
}

// The ways from entry functions to a switch, by calls of functions that the pass has looked at. A way that calls a
// function again while it is in it is not counted: it has the same beginning and end as one that does not.
class Ways {
public:
    explicit Ways(const SmallPtrSetImpl<Function *> &functions) : functions(functions)
    {
        for (Function *function : functions)
            if (callers(*function) == 0)
                total = std::min(MANY, total + down(*function));
    }
    uint64_t in_all() const { return total; }
    uint64_t through(Function &function) { return std::min(MANY, down(function) * up(function)); }
    size_t callers(const Function &function) const
    {
        return count_if(function.users(), [&](const User *user) { return is_caller(*user, function); });
    }

private:
    static constexpr uint64_t MANY = 1000000;
    const SmallPtrSetImpl<Function *> &functions;
    DenseMap<Function *, uint64_t> below, above;
    uint64_t total = 0;

    bool is_caller(const User &user, const Function &function) const
    {
        auto *call = dyn_cast<CallBase>(&user);
        return call && call->getCalledOperand() == &function && call->getFunction() != &function &&
               functions.contains(const_cast<Function *>(call->getFunction()));
    }
    uint64_t down(Function &function)
    {
        if (auto [at, is_new] = below.try_emplace(&function, 0); !is_new)
            return at->second;
        uint64_t ways = 0;
        for (Instruction &instruction : instructions(function)) {
            auto *call = dyn_cast<CallBase>(&instruction);
            Function *callee = call ? call->getCalledFunction() : nullptr;
            if (callee && !callee->isDeclaration() && functions.contains(callee))
                ways += down(*callee);
            else if (call && (is_switch(*call) || call->getCallingConv() == SWITCHING))
                ways++;
        }
        return below[&function] = std::min(MANY, ways);
    }
    uint64_t up(Function &function)
    {
        if (auto [at, is_new] = above.try_emplace(&function, 0); !is_new)
            return at->second;
        uint64_t ways = callers(function) == 0;
        for (User *user : function.users())
            if (is_caller(*user, function))
                ways += up(*cast<CallBase>(user)->getFunction());
        return above[&function] = std::min(MANY, ways);
    }
};

class Apn : public PassInfoMixin<Apn> {
public:
    PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
    {
        Triple target(module.getTargetTriple());
        if (!(target.getArch() == Triple::x86_64 && !target.isX32() && !target.isOSWindows()) &&
            !target.isAArch64(64)) {
            lines += "unchanged: " + module.getSourceFileName() + ": " + target.str() + " has no preserve_none\n";
            write_report(module);
            return PreservedAnalyses::all();
        }
        infect_named(module);
        for (Function &function : module)
            if (function.getCallingConv() == SWITCHING)
                work.insert(&function);
            else if (!explicit_option && any_of(instructions(function), calls_switch))
                consider(function, "it switches");
        while (!work.empty()) {
            Function *callee = work.pop_back_val();
            for (User *user : callee->users())
                if (auto *call = dyn_cast<CallBase>(user); call && call->getCalledOperand() == callee)
                    consider(*call->getFunction(), "it calls " + quoted(*callee));
        }
        mark_returns(module);
        write_report(module);
        return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
    }
    static bool isRequired() { return true; } // also under -O0

private:
    SmallSetVector<Function *, 16> work;
    SmallPtrSet<Function *, 16> considered;
    std::string lines;
    bool changed = false;

    // Why the calls of the function must keep their convention; empty: there is no reason.
    std::string why_not(Function &function)
    {
        if (function.getName() == "main")
            return "it is main";
        if (function.isVarArg())
            return "it takes a variable number of arguments";
        if (function.arg_size() > PARAMETERS_AT_MOST)
            return "it has more than " + std::to_string(PARAMETERS_AT_MOST) + " parameters";
        if (function.getCallingConv() != CallingConv::C && function.getCallingConv() != CallingConv::Fast)
            return "it has another calling convention";
        for (Attribute::AttrKind kind : {Attribute::Nest, Attribute::InAlloca, Attribute::Preallocated,
                                         Attribute::SwiftSelf, Attribute::SwiftError, Attribute::SwiftAsync})
            if (function.getAttributes().hasAttrSomewhere(kind))
                return "a parameter has a register of its own (" + Attribute::getNameFromAttrKind(kind).str() + ")";
        if (function.hasFnAttribute(Attribute::Naked))
            return "it is naked";
        if (function.hasFnAttribute("split-stack"))
            return "its stack is split";
        for (const Instruction &instruction : instructions(function)) {
            if (may_need_base_pointer(instruction))
                return "its frame is of variable size";
            if (auto *call = dyn_cast<CallInst>(&instruction); call && call->isMustTailCall())
                return "a tail call in it must be one";
        }
        for (const Use &use : function.uses()) {
            auto *call = dyn_cast<CallBase>(use.getUser());
            if (isa<BlockAddress>(use.getUser()))
                continue; // of a label in it
            if (!call || !call->isCallee(&use)) {
                std::string where = named_user(*use.getUser());
                return "its address is taken" + (where.empty() ? "" : " " + where);
            }
            if (call->getFunctionType() != function.getFunctionType())
                return "it is called as another type in " + quoted(*call->getFunction());
            if (call->isMustTailCall())
                return "its call in " + quoted(*call->getFunction()) + " must be a tail call";
        }
        return "";
    }

    // A function in which a switch happens, and why.
    void consider(Function &function, const std::string &why)
    {
        if (function.getCallingConv() == SWITCHING || !considered.insert(&function).second)
            return;
        std::string reason = why_not(function);
        if (reason.empty() && !function.hasLocalLinkage())
            reason = "other units may call it";
        if (reason.empty())
            infect(function, why);
        else
            tell(function, false, why + "; " + reason);
    }

    void infect(Function &function, const std::string &why)
    {
        function.setCallingConv(SWITCHING);
        for (User *user : function.users())
            if (auto *call = dyn_cast<CallBase>(user); call && call->getCalledOperand() == &function)
                call->setCallingConv(SWITCHING);
        work.insert(&function);
        changed = true;
        tell(function, true, why);
    }

    // Functions that wait return by pop and jump where that is asked for, and where their returns differ with the way.
    void mark_returns(Module &module)
    {
        std::string which = setting(returns_option, "APN_RETURNS");
        if (Triple target(module.getTargetTriple()); which.empty() || !target.isX86() || !target.isOSBinFormatELF())
            return;
        if (which != "mixed" && which != "all") {
            module.getContext().emitError("apn: -apn-returns=" + which + " is neither mixed nor all");
            return;
        }
        SmallPtrSet<Function *, 16> functions = considered;
        for (Function &function : module)
            if (function.getCallingConv() == SWITCHING && !function.isDeclaration())
                functions.insert(&function);
        Ways ways(functions);
        bool is_marked = false;
        for (Function &function : module)
            if (function.getCallingConv() == SWITCHING && !function.isDeclaration())
                is_marked |= mark_return(function, ways, which == "all");
        if (is_marked)
            module.appendModuleInlineAsm(RETURN_THUNK);
        changed |= is_marked;
    }

    bool mark_return(Function &function, Ways &ways, bool is_all)
    {
        std::string name = "returns: " + function.getName().str() + ": ";
        std::string count = std::to_string(ways.through(function)) + " of " + std::to_string(ways.in_all()) + " ways";
        bool has_shadow_stack = function.getParent()->getModuleFlag("cf-protection-return") != nullptr;
        const char *reason = has_shadow_stack ? "; the stack has a shadow"
                             : function.hasFnAttribute(Attribute::Naked) ? "; it is naked"
                             : !leaves_rcx(*function.getReturnType())    ? "; its result takes three registers"
                             : !is_all && ways.callers(function) <= 1 && ways.through(function) == ways.in_all()
                                 ? "; it returns to one place"
                                 : nullptr;
        lines += name + (reason ? "by ret, " : "by pop and jump, ") + count + (reason ? reason : "") + "\n";
        if (!reason)
            function.addFnAttr(Attribute::FnRetThunkExtern);
        return !reason;
    }

    // Named functions have the convention in every unit, so it is an error if something stops it.
    void infect_named(Module &module)
    {
        std::string file = setting(list_option, "APN_LIST");
        if (file.empty())
            return;
        auto text = MemoryBuffer::getFile(file, true);
        if (!text) {
            module.getContext().emitError("apn: cannot read the list " + file + ": " + text.getError().message());
            return;
        }
        SmallVector<StringRef> names;
        (*text)->getBuffer().split(names, '\n', -1, false);
        for (StringRef name : names) {
            name = name.split('#').first.trim();
            Function *function = name.empty() ? nullptr : module.getFunction(name);
            if (!function || function->getCallingConv() == SWITCHING)
                continue;
            std::string reason = why_not(*function);
            if (reason.empty())
                infect(*function, "it is listed");
            else
                module.getContext().emitError("apn: " + quoted(*function) + " is listed in " + file + ", but " +
                                              reason);
        }
    }

    void tell(Function &function, bool is_infected, const std::string &why)
    {
        std::string where = function.getParent()->getSourceFileName();
        if (DISubprogram *source = function.getSubprogram())
            where = source->getFilename().str() + ":" + std::to_string(source->getLine());
        lines += (is_infected ? "infected: " : "stopped: ") + function.getName().str() + " (" + where + "): " + why +
                 "\n";
        if (function.isDeclaration())
            return;
        DiagnosticLocation location =
            function.getSubprogram() ? DiagnosticLocation(function.getSubprogram()) : DiagnosticLocation();
        OptimizationRemarkEmitter emitter(&function);
        if (is_infected)
            emitter.emit(OptimizationRemark("apn", "Infected", location, &function.getEntryBlock())
                         << quoted(function) << " has preserve_none: " << why);
        else
            emitter.emit(OptimizationRemarkMissed("apn", "Stopped", location, &function.getEntryBlock())
                         << quoted(function) << " keeps its convention: " << why);
    }

    // One write, as several compilers may add to the file at the same time.
    void write_report(Module &module)
    {
        std::string file = setting(report_option, "APN_REPORT");
        if (file.empty() || lines.empty())
            return;
        if (file == "-") {
            errs() << lines;
            return;
        }
        std::error_code error;
        raw_fd_ostream out(file, error, sys::fs::CD_OpenAlways, sys::fs::FA_Write, sys::fs::OF_Append);
        if (!error) {
            out.SetBufferSize(lines.size() + 1);
            out << lines;
            out.close();
            error = out.error();
        }
        if (error) {
            out.clear_error();
            module.getContext().emitError("apn: cannot write the report " + file + ": " + error.message());
        }
    }
};

} // namespace

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo()
{
    return {LLVM_PLUGIN_API_VERSION, "apn", "1", [](PassBuilder &builder) {
                builder.registerPipelineParsingCallback(
                    [](StringRef name, ModulePassManager &passes, ArrayRef<PassBuilder::PipelineElement>) {
                        if (name != "apn")
                            return false;
                        passes.addPass(Apn());
                        return true;
                    });
                // last, after inlining: of a unit, and of the whole program
                builder.registerOptimizerLastEPCallback(
                    [](ModulePassManager &passes, OptimizationLevel) { passes.addPass(Apn()); });
                builder.registerFullLinkTimeOptimizationLastEPCallback(
                    [](ModulePassManager &passes, OptimizationLevel) { passes.addPass(Apn()); });
            }};
}
