/* protoc-gen-acorn: a plugin of protoc that writes NAME.acorn.hpp for NAME.proto: a class for each service, whose
 * virtual functions are its methods, and a stub in it that calls them (docs/grpc.md).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <google/protobuf/compiler/code_generator.h>
#include <google/protobuf/compiler/plugin.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/io/printer.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <map>
#include <memory>
#include <string>

namespace
{

using namespace google::protobuf;
using variables = std::map<std::string, std::string>;

std::string replaced(std::string text, const std::string &from, const std::string &to)
{
    for (std::string::size_type at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    return text;
}

std::string cpp_name(const Descriptor *message)
{
    return "::" + replaced(message->full_name(), ".", "::");
}

std::string without_suffix(const std::string &name)
{
    const std::string suffix = ".proto";
    const std::string::size_type n = name.size() > suffix.size() ? name.size() - suffix.size() : name.size();
    return name.compare(n, suffix.size(), suffix) == 0 ? name.substr(0, n) : name;
}

variables variables_of(const MethodDescriptor *method)
{
    return {{"name", method->name()},
            {"path", "/" + method->service()->full_name() + "/" + method->name()},
            {"request", cpp_name(method->input_type())},
            {"reply", cpp_name(method->output_type())}};
}

/* The result and parameters of a method's function, and how it is added to a server. */
struct form {
    const char *result, *parameters, *add, *lambda, *arguments;
};

form form_of(const MethodDescriptor *method)
{
    if (method->client_streaming() && method->server_streaming())
        return {"void", "::aco::grpc_reader<$request$> &requests, ::aco::grpc_writer<$reply$> &replies",
                "add_both_streams<$request$, $reply$>", "auto &requests, auto &replies", "requests, replies"};
    if (method->client_streaming())
        return {"$reply$", "::aco::grpc_reader<$request$> &requests", "add_client_stream<$request$>", "auto &requests",
                "requests"};
    if (method->server_streaming())
        return {"void", "const $request$ &request, ::aco::grpc_writer<$reply$> &replies",
                "add_server_stream<$request$, $reply$>", "const auto &request, auto &replies", "request, replies"};
    return {"$reply$", "const $request$ &request", "add_unary<$request$>", "const auto &request", "request"};
}

/* Parameters have no names where nothing uses them. */
std::string unnamed(std::string parameters)
{
    for (const char *name : {" &requests", " &request", " &replies"})
        parameters = replaced(parameters, name, " &");
    return parameters;
}

void print_comment(io::Printer &out, std::string text)
{
    while (!text.empty() && (text.back() == '\n' || text.back() == '\\'))
        text.pop_back();
    out.Print("    //$text$\n", "text", replaced(text, "\n", "\n    //"));
}

void print_method(io::Printer &out, const MethodDescriptor *method)
{
    const form is = form_of(method);
    SourceLocation location;
    if (method->GetSourceLocation(&location) && !location.leading_comments.empty())
        print_comment(out, location.leading_comments);
    const std::string text = std::string("    virtual ") + is.result + " $name$(::aco::grpc_call &, " +
                             unnamed(is.parameters) +
                             ")\n    {\n        throw ::aco::grpc_error("
                             "ACO_GRPC_UNIMPLEMENTED, \"$name$ is not implemented\");\n    }\n";
    out.Print(variables_of(method), text.c_str());
}

void print_added(io::Printer &out, const MethodDescriptor *method)
{
    const form is = form_of(method);
    const std::string text = std::string("        server.") + is.add +
                             "(\"$path$\",\n            [this](::aco::grpc_call &call, " + is.lambda +
                             ") { return $name$(call, " + is.arguments + "); });\n";
    out.Print(variables_of(method), text.c_str());
}

/* A method's function in the stub. */
std::string stub_form_of(const MethodDescriptor *method)
{
    const std::string unary = "$name$(const $request$ &request, ::aco::grpc_context *context = nullptr)";
    const std::string stream = "$name$(::aco::grpc_context *context = nullptr)";
    if (method->client_streaming() && method->server_streaming())
        return "::aco::grpc_client_stream<$request$, $reply$> " + stream;
    if (method->client_streaming())
        return "::aco::grpc_client_writer<$request$, $reply$> " + stream;
    return (method->server_streaming() ? "::aco::grpc_client_reader<$reply$> " : "$reply$ ") + unary;
}

std::string stub_result_of(const MethodDescriptor *method)
{
    if (method->client_streaming())
        return std::string(method->server_streaming() ? "::aco::grpc_client_stream" : "::aco::grpc_client_writer") +
               "<$request$, $reply$>(*channel_, \"$path$\", context)";
    return std::string(method->server_streaming() ? "::aco::grpc_client_reader" : "::aco::detail::grpc_unary") +
           "<$reply$>(*channel_, \"$path$\", request, context)";
}

void print_stub(io::Printer &out, const ServiceDescriptor *service)
{
    out.Print("\n    /* Calls the service by a channel, which must live longer. Any status but OK is thrown as an\n"
              "     * aco::grpc_error. */\n    class stub\n    {\n      public:\n"
              "        explicit stub(::aco::grpc_channel &channel) noexcept : channel_(&channel) {}\n");
    for (int i = 0; i < service->method_count(); i++) {
        const MethodDescriptor *method = service->method(i);
        const std::string text = "        " + stub_form_of(method) + "\n        {\n            return " +
                                 stub_result_of(method) + ";\n        }\n";
        out.Print(variables_of(method), text.c_str());
    }
    out.Print("\n      private:\n        ::aco::grpc_channel *channel_;\n    };\n");
}

void print_service(io::Printer &out, const ServiceDescriptor *service)
{
    out.Print("\n/* The service $full$. Each function runs in the task of its call; what it throws is the status. */\n"
              "class $name$\n{\n  public:\n    virtual ~$name$() = default;\n",
              "full", service->full_name(), "name", service->name());
    for (int i = 0; i < service->method_count(); i++)
        print_method(out, service->method(i));
    out.Print("\n    /* Adds the methods to a server, which must not live longer than this. */\n"
              "    void add_to(::aco::grpc_server &server)\n    {\n");
    for (int i = 0; i < service->method_count(); i++)
        print_added(out, service->method(i));
    if (service->method_count() && service->file()->options().optimize_for() != FileOptions::LITE_RUNTIME)
        out.Print(
            "        ::aco::detail::grpc_add_files<google::protobuf::FileDescriptorProto>(\n"
            "            server, google::protobuf::DescriptorPool::generated_pool()->FindFileByName(\"$file$\"));\n",
            "file", service->file()->name());
    out.Print("    }\n");
    print_stub(out, service);
    out.Print("};\n");
}

class generator : public compiler::CodeGenerator
{
  public:
    bool Generate(const FileDescriptor *file, const std::string &, compiler::GeneratorContext *context,
                  std::string *) const override
    {
        const std::string base = without_suffix(file->name());
        const std::unique_ptr<io::ZeroCopyOutputStream> stream(context->Open(base + ".acorn.hpp"));
        io::Printer out(stream.get(), '$');
        const std::string space = replaced(file->package(), ".", "::");
        out.Print("// Made by protoc-gen-acorn of $file$. Changes are lost.\n#pragma once\n#include <aco/grpc.hpp>\n"
                  "#include \"$base$.pb.h\"\n",
                  "file", file->name(), "base", base);
        if (file->options().optimize_for() != FileOptions::LITE_RUNTIME)
            out.Print("#include <google/protobuf/descriptor.pb.h>\n");
        if (!space.empty())
            out.Print("\nnamespace $space$\n{\n", "space", space);
        for (int i = 0; i < file->service_count(); i++)
            print_service(out, file->service(i));
        if (!space.empty())
            out.Print("\n} // namespace $space$\n", "space", space);
        return true;
    }
    uint64_t GetSupportedFeatures() const override
    {
        return FEATURE_PROTO3_OPTIONAL;
    }
};

} // namespace

int main(int argc, char **argv)
{
    const generator is;
    return compiler::PluginMain(argc, argv, &is);
}
