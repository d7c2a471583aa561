use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registry {
    Npm,
    PyPi,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelfInstaller {
    pub registry: Registry,
    /// Packages to install. Each includes a version if the command names one.
    pub packages: Vec<String>,
    /// Name of the program to start. `None` if the program has the name of the package.
    pub program: Option<String>,
    pub arguments: Vec<String>,
}

struct Form {
    program: &'static str,
    words: &'static [&'static str],
    registry: Registry,
    /// Flags that take no value and do not change which program runs.
    ignored: &'static [&'static str],
    /// Flags whose value is the package. After such a flag, the first word that is no flag names the program.
    from: &'static [&'static str],
    with: &'static [&'static str],
}

const NPM_IGNORED: &[&str] = &["-y", "--yes", "-q", "--quiet", "--silent", "--prefer-online"];
const NPM_FROM: &[&str] = &["-p", "--package"];
const UV_IGNORED: &[&str] = &["-q", "--quiet", "--refresh", "--no-progress", "--isolated"];

const FORMS: [Form; 8] = [
    Form {
        program: "npx",
        words: &[],
        registry: Registry::Npm,
        ignored: NPM_IGNORED,
        from: NPM_FROM,
        with: &[],
    },
    Form {
        program: "npm",
        words: &["exec"],
        registry: Registry::Npm,
        ignored: NPM_IGNORED,
        from: NPM_FROM,
        with: &[],
    },
    Form {
        program: "pnpm",
        words: &["dlx"],
        registry: Registry::Npm,
        ignored: &["--silent"],
        from: &["--package"],
        with: &[],
    },
    Form {
        program: "yarn",
        words: &["dlx"],
        registry: Registry::Npm,
        ignored: &["-q", "--quiet"],
        from: NPM_FROM,
        with: &[],
    },
    Form {
        program: "bunx",
        words: &[],
        registry: Registry::Npm,
        ignored: &["-y", "--bun", "--silent"],
        from: NPM_FROM,
        with: &[],
    },
    Form {
        program: "uvx",
        words: &[],
        registry: Registry::PyPi,
        ignored: UV_IGNORED,
        from: &["--from"],
        with: &["--with"],
    },
    Form {
        program: "uv",
        words: &["tool", "run"],
        registry: Registry::PyPi,
        ignored: UV_IGNORED,
        from: &["--from"],
        with: &["--with"],
    },
    Form {
        program: "pipx",
        words: &["run"],
        registry: Registry::PyPi,
        ignored: &["--quiet", "-q"],
        from: &["--spec"],
        with: &[],
    },
];

impl SelfInstaller {
    /// Parses a command line. Returns `None` if it installs nothing, or has an unknown flag, source or version syntax.
    pub fn of(command: &str, arguments: &[String]) -> Option<Self> {
        let name = Path::new(command).file_name()?.to_str()?;
        let form = FORMS.iter().find(|form| {
            form.program == name
                && form.words.iter().copied().eq(arguments.iter().take(form.words.len()).map(String::as_str))
        })?;
        form.read(arguments.get(form.words.len()..)?)
    }

    /// True if the command is an installer such as `npx`, even if [`SelfInstaller::of`] does not accept its arguments.
    pub fn is_runner(command: &str, arguments: &[String]) -> bool {
        let name = Path::new(command).file_name().and_then(|name| name.to_str());
        let begins = |form: &Form| {
            form.words.iter().copied().eq(arguments.iter().take(form.words.len()).map(String::as_str))
        };
        FORMS.iter().any(|form| name == Some(form.program) && begins(form))
    }

    /// Returns the arguments with this version of the first package. `None` if `version` or the command is not
    /// accepted.
    pub fn versioned(command: &str, arguments: &[String], version: &str) -> Option<Vec<String>> {
        let Self { registry, packages, .. } = Self::of(command, arguments)?;
        if version.is_empty() || version.starts_with(['-', '=']) || !is_version(version) {
            return None;
        }
        let first = packages.first()?;
        let is_first = |word: &str| registry.package(word).as_ref() == Some(first);
        let versioned = |word: &String| match word.split_once('=') {
            _ if is_first(word) => Some(registry.versioned(word, version)),
            Some((flag, value)) if flag.starts_with("--") && is_first(value) => {
                Some(format!("{flag}={}", registry.versioned(value, version)))
            }
            _ => None,
        };
        let mut words = arguments.to_vec();
        let place = words.iter().position(|word| versioned(word).is_some())?;
        words[place] = versioned(&words[place])?;
        Some(words)
    }

    /// Returns the name of the preset of hosts (see `docs/network.md`) to which the installation may connect.
    pub fn preset(&self) -> &'static str {
        match self.registry {
            Registry::Npm => "@npm",
            Registry::PyPi => "@pypi",
        }
    }

    /// Returns the path of the installed program `name` in the directory `tree`, and the arguments for the program.
    pub fn command(&self, tree: &Path, name: &str) -> (String, Vec<String>) {
        let directory = match self.registry {
            Registry::Npm => tree.join("node_modules/.bin"),
            Registry::PyPi => tree.join("bin"),
        };
        (directory.join(name).display().to_string(), self.arguments.clone())
    }
}

impl Form {
    fn read(&self, words: &[String]) -> Option<SelfInstaller> {
        let (mut from, mut with) = (Vec::new(), Vec::new());
        let mut words = words.iter();
        let first = loop {
            let word = words.next()?;
            let (flag, value) = match word.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
                _ => (word.as_str(), None),
            };
            if flag == "--" {
                break words.next()?;
            } else if self.from.contains(&flag) {
                from.push(value.or_else(|| words.next().cloned())?);
            } else if self.with.contains(&flag) {
                with.push(value.or_else(|| words.next().cloned())?);
            } else if flag.starts_with('-') {
                self.ignored.contains(&flag).then_some(())?;
            } else {
                break word;
            }
        };
        let (mut packages, program) =
            if from.is_empty() { (vec![first.clone()], None) } else { (from, Some(first.clone())) };
        packages.append(&mut with);
        let packages =
            packages.iter().map(|package| self.registry.package(package)).collect::<Option<_>>()?;
        if !program.as_deref().is_none_or(is_program) {
            return None;
        }
        Some(SelfInstaller {
            registry: self.registry,
            packages,
            program,
            arguments: words.cloned().collect(),
        })
    }
}

impl Registry {
    pub fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::PyPi => "PyPI",
        }
    }

    pub fn unversioned(self, package: &str) -> &str {
        let end = match self {
            // The first character of a scope is an `@`, too.
            Self::Npm => package.get(1..).and_then(|rest| rest.find('@')).map(|at| at + 1),
            Self::PyPi => package.find(['@', '=', '<', '>', '~', '!']),
        };
        &package[..end.unwrap_or(package.len())]
    }

    fn versioned(self, package: &str, version: &str) -> String {
        let sign = match self {
            Self::Npm => "@",
            Self::PyPi => "==",
        };
        format!("{}{sign}{version}", self.unversioned(package))
    }

    /// Returns `word` as a package: a name, perhaps with a version. `None` if `word` is a file, URL or repository.
    fn package(self, word: &str) -> Option<String> {
        match self {
            Self::Npm => {
                let (scope, rest) = match word.strip_prefix('@') {
                    Some(scoped) => scoped.split_once('/').map(|(scope, rest)| (Some(scope), rest))?,
                    None => (None, word),
                };
                let (name, version) =
                    rest.split_once('@').map_or((rest, None), |(name, version)| (name, Some(version)));
                let fits = scope.is_none_or(is_name) && is_name(name) && version.is_none_or(is_version);
                fits.then(|| word.to_owned())
            }
            Self::PyPi => {
                let end = word.find(['@', '=', '<', '>', '~', '!']).unwrap_or(word.len());
                let (name, version) = word.split_at(end);
                let (name, extras) = match name.split_once('[') {
                    Some((name, extras)) => (name, Some(extras.strip_suffix(']')?)),
                    None => (name, None),
                };
                let fits = is_name(name)
                    && extras.is_none_or(|extras| extras.split(',').all(is_name))
                    && version
                        .split(',')
                        .all(|part| is_version(part.trim_start_matches(['@', '=', '<', '>', '~', '!'])));
                // uv also accepts `@VERSION`, and `@latest` for the newest version.
                let version = match version.strip_prefix('@') {
                    Some("latest") => String::new(),
                    Some(version) => format!("=={version}"),
                    None => version.to_owned(),
                };
                fits.then(|| format!("{}{version}", &word[..end]))
            }
        }
    }
}

fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=214).contains(&text.len())
        && text.bytes().all(is_plain)
        && text.as_bytes()[0].is_ascii_alphanumeric()
}

fn is_version(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".*+^~_-".contains(&byte);
    text.len() <= 64 && text.bytes().all(is_plain)
}

pub(super) fn is_program(text: &str) -> bool {
    is_name(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<(String, Option<String>, Vec<String>)> {
        let mut words = line.split(' ').map(str::to_owned);
        let command = words.next()?;
        let found = SelfInstaller::of(&command, &words.collect::<Vec<_>>())?;
        Some((format!("{} {}", found.preset(), found.packages.join(" ")), found.program, found.arguments))
    }

    #[test]
    fn the_commands_of_the_field_are_recognised() {
        for (line, packages, program, arguments) in [
            ("npx -y @scope/server-files /a b", "@npm @scope/server-files", None, "/a b"),
            ("/usr/bin/npx --yes server@1.2.3 --port=3", "@npm server@1.2.3", None, "--port=3"),
            ("npx -p server@^2 run-it x", "@npm server@^2", Some("run-it"), "x"),
            ("npm exec --package=server -- run-it", "@npm server", Some("run-it"), ""),
            ("pnpm dlx server", "@npm server", None, ""),
            ("yarn dlx -q server", "@npm server", None, ""),
            ("bunx --bun @scope/server@1 x", "@npm @scope/server@1", None, "x"),
            ("uvx mcp-server-git --repository .", "@pypi mcp-server-git", None, "--repository ."),
            ("uvx server@latest", "@pypi server", None, ""),
            ("uvx server@1.0", "@pypi server==1.0", None, ""),
            (
                "uvx --from server[all]==2.* --with extra tool -v",
                "@pypi server[all]==2.* extra",
                Some("tool"),
                "-v",
            ),
            ("uv tool run server>=1,<2", "@pypi server>=1,<2", None, ""),
            ("pipx run --spec server tool", "@pypi server", Some("tool"), ""),
        ] {
            let arguments: Vec<_> =
                arguments.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
            let expected = Some((packages.to_owned(), program.map(str::to_owned), arguments));
            assert_eq!(of(line), expected, "{line}");
        }
    }

    #[test]
    fn another_version_changes_the_package_and_nothing_else() {
        let said = |line: &str, version: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            let command = words.next().unwrap();
            let words: Vec<_> = words.collect();
            SelfInstaller::versioned(&command, &words, version).map(|words| words.join(" "))
        };
        for (line, changed) in [
            ("npx -y @scope/server /a", "-y @scope/server@2.0 /a"),
            ("npx -y server@1.0 server", "-y server@2.0 server"),
            ("npx --package=server@1 run-it", "--package=server@2.0 run-it"),
            ("uvx server@1 x", "server==2.0 x"),
            ("uvx --from server[all]>=1 server", "--from server[all]==2.0 server"),
            ("uv tool run server", "tool run server==2.0"),
        ] {
            assert_eq!(said(line, "2.0").as_deref(), Some(changed), "{line}");
        }
        for version in ["", "-x", "a b", "1;true", "=1"] {
            assert_eq!(said("npx server", version), None, "{version}");
        }
        assert_eq!(said("node server", "1"), None);
    }

    #[test]
    fn other_commands_are_not() {
        for line in [
            "node server.js",
            "npx",
            "npx -y",
            "npx --registry http://a.example server",
            "npx https://a.example/x.tgz",
            "npx github:user/repository",
            "npx ./local",
            "npx ../local",
            "npx -c true",
            "npm install server",
            "uv run server",
            "uvx --from git+https://a.example/x tool",
            "uvx --from . tool",
            "uvx --index-url http://a.example server",
            "uvx server;true",
            "uvx --from server ../tool",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
