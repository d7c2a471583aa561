//! Compiles the seccomp rules into programs for the target architecture, so that a start only attaches them.

#[expect(unreachable_pub, reason = "it is the library's")]
#[path = "src/seccomp/assemble.rs"]
mod assemble;
#[expect(dead_code, unreachable_pub, reason = "it is the library's, whose tests look at more of it")]
#[path = "src/seccomp/rules/mod.rs"]
mod rules;

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use rules::{Arch, Case, RuleKind};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src/seccomp/rules");
    println!("cargo::rerun-if-changed=src/seccomp/assemble.rs");
    let name = env::var("CARGO_CFG_TARGET_ARCH")?;
    let Some(target) = Arch::ALL.into_iter().find(|arch| arch.name() == name) else {
        return Err(format!(
            "no seccomp rules for {name}: the calls have numbers for x86_64 and aarch64 only"
        )
        .into());
    };
    let directory = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let write = |file: String, arch| -> Result<(), Box<dyn Error>> {
        Ok(fs::write(Path::new(&directory).join(file), source(arch)?)?)
    };
    write("programs.rs".into(), target)?;
    Arch::ALL.into_iter().try_for_each(|arch| write(format!("programs_{}.rs", arch.name()), arch))
}

fn source(arch: Arch) -> Result<String, Box<dyn Error>> {
    let mut bodies: BTreeMap<String, usize> = BTreeMap::new();
    let mut table = String::new();
    for kind in RuleKind::ALL {
        table.push_str("    [\n");
        for case in Case::all() {
            let (instructions, rules) = assemble::join(&rules::denials(kind, case), arch)?;
            let mut body = String::new();
            for seccompiler::sock_filter { code, jt, jf, k } in &instructions {
                writeln!(body, "    sock_filter {{ code: {code}, jt: {jt}, jf: {jf}, k: {k} }},")?;
            }
            let next = bodies.len();
            let body = bodies.entry(body).or_insert(next);
            writeln!(table, "        Program {{ instructions: &BODY_{body}, rules: {rules} }},")?;
        }
        table.push_str("    ],\n");
    }
    let mut source = String::new();
    for (body, index) in &bodies {
        writeln!(source, "static BODY_{index}: [sock_filter; {}] = [\n{body}];", body.lines().count())?;
    }
    let (kinds, cases) = (RuleKind::ALL.len(), Case::COUNT);
    writeln!(source, "pub(super) static PROGRAMS: [[Program; {cases}]; {kinds}] = [\n{table}];")?;
    Ok(source)
}
