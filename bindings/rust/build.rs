//! Links libacorn.a of the folder ACORN_LIB_DIR. Without that variable, compiles the library of this source tree.
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn compile(root: &Path, out: &Path) {
    let tool = |name: &str| Command::new(env::var_os(name).unwrap_or_else(|| name.to_lowercase().into()));
    let sources = run(Command::new("sh").arg(root.join("tools/sources.sh")).arg("acorn"));
    let mut amalgamate = Command::new("sh");
    amalgamate.arg(root.join("tools/amalgamate.sh")).arg(root).arg(out);
    run(amalgamate.args(sources.split_whitespace()).arg("--own"));
    run(tool("CC").current_dir(out).args(["-O2", "-fPIC", "-fexceptions", "-c", "aco.c"]));
    run(tool("AR").current_dir(out).args(["crs", "libacorn.a", "aco.o"]));
}

fn main() {
    println!("cargo:rerun-if-env-changed=ACORN_LIB_DIR");
    let folder = env::var_os("ACORN_LIB_DIR").map(PathBuf::from).unwrap_or_else(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
        compile(&root, &out);
        for changed in ["src", "include", "tools"] {
            println!("cargo:rerun-if-changed={}", root.join(changed).display());
        }
        out
    });
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=static=acorn");
}
