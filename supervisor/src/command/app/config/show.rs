//! `bailiwick config`: the settings in force, with their origins.

use ipc::rights::Network;
use std::io::{self, Write};
use std::path::Path;

use gate::roles::Role;
use model::provider::catalogue::{self, Entry, Facts, Field};
use protocol::shell_word::shell_word;
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::process::exit::{Exit, printed};
use crate::process::messages::tell;
use crate::settings::args::ConfigArgs;
use crate::settings::config::{
    Binding, ConfigOrigin, Effective, Element, Ignored, KEYS, Key, Kind, Layer, Preset, Resolution,
    RoleEntry, Sources, Value,
};

struct SettingRow {
    name: String,
    shown: String,
    json: Json,
    origin: ConfigOrigin,
    /// True if the value has no effect until the person trusts the project.
    ignored: bool,
}

pub(super) fn run(sources: &Sources, args: &ConfigArgs) -> Exit {
    let flags = Layer::default();
    let effective = sources.effective(&flags);
    let ignored = effective
        .ignored
        .iter()
        .map(|Ignored { key, value, origin }| SettingRow { ignored: true, ..row(key, Some(value), origin) });
    let mut rows: Vec<_> = effective.settled.iter().flat_map(of_key).chain(ignored).collect();
    rows.sort_by_key(|row| KEYS.iter().position(|key| key.name == row.name));
    rows.extend(effective.bindings.iter().map(of_binding));
    rows.extend(effective.roles.iter().map(of_role));
    rows.extend(of_model(&effective));
    tell(&sources.notices(&effective, &flags));
    let done = match args {
        ConfigArgs { json: true, .. } => print_json(&rows),
        ConfigArgs { all: true, .. } => print(&rows),
        _ => print_different(rows, &args.directory),
    };
    printed(done, Exit::Done)
}

/// Returns the rows for a key: one, or for a list one for each element, because each has its own origin.
fn of_key(settled: &Resolution) -> Vec<SettingRow> {
    let Resolution { key, value, origin } = settled;
    match value.as_ref().map(Value::elements) {
        None | Some([]) => vec![row(key, value.as_ref(), origin)],
        Some(elements) => {
            let one =
                |element: &Element| row(key, Some(&Value::List(vec![element.clone()])), &element.origin);
            elements.iter().map(one).collect()
        }
    }
}

fn row(key: &Key, value: Option<&Value>, origin: &ConfigOrigin) -> SettingRow {
    let shown = match (value, key.preset) {
        (Some(value), _) => value.to_string(),
        (None, Preset::Unset(meaning)) => meaning.to_owned(),
        (None, _) => String::new(),
    };
    let json = value.map_or(Json::Null, |value| json_value(value, key.kind));
    SettingRow { name: key.name.to_owned(), shown, json, origin: origin.clone(), ignored: false }
}

fn of_binding(binding: &Binding) -> SettingRow {
    let rebinding = &binding.rebinding;
    SettingRow {
        name: format!("keys.{}.{}", rebinding.mode.as_str(), rebinding.command),
        shown: format!("{:?}", rebinding.keys),
        json: json!(rebinding.keys),
        origin: binding.origin.clone(),
        ignored: false,
    }
}

fn of_role(entry: &RoleEntry) -> SettingRow {
    let RoleEntry { role, origin } = entry;
    let Role { name, description, prompt, writes, model, tools, max_steps, max_usd } = role;
    let access = if *writes { "write" } else { "read" };
    let fields = json!({
        "description": description, "prompt": prompt, "access": access, "model": model, "tools": tools,
        "max_steps": max_steps, "max_usd": max_usd,
    });
    SettingRow {
        name: format!("agents.{name}"),
        shown: format!("{description:?} (access {access})"),
        json: fields,
        origin: origin.clone(),
        ignored: false,
    }
}

/// Returns the rows about the model. Each value comes from the person's settings, the catalogue, or the defaults.
fn of_model(effective: &Effective) -> Vec<SettingRow> {
    let said = effective.of_model();
    let of_user = said.iter().map(|model| (&model.entry, model.origin.clone()));
    let built_in =
        catalogue::built_in(effective.model()).into_iter().map(|entry| (entry, ConfigOrigin::Catalogue));
    let preset = Entry::from(Facts::default());
    let sources: Vec<_> = of_user.chain(built_in).chain([(&preset, ConfigOrigin::Default)]).collect();
    let fact = |field: &Field| {
        let said = sources.iter().find_map(|(entry, origin)| Some(((field.shown)(entry)?, origin.clone())));
        let (json, (shown, origin)) = match said {
            Some((shown, origin)) => (json!(shown), (shown, origin)),
            None => (Json::Null, ("unknown".to_owned(), ConfigOrigin::Default)),
        };
        let name = format!("models.{:?}.{}", effective.model(), field.name);
        SettingRow { name, shown, json, origin, ignored: false }
    };
    catalogue::FIELDS.iter().map(fact).collect()
}

/// Prints the settings that differ from the defaults.
fn print_different(mut rows: Vec<SettingRow>, project: &Path) -> io::Result<()> {
    let count = rows.len();
    rows.retain(|row| !matches!(row.origin, ConfigOrigin::Default | ConfigOrigin::Catalogue));
    print(&rows)?;
    let project =
        if project == Path::new(".") { String::new() } else { format!(" -C {}", shell_word(project)) };
    let count = count - rows.len();
    writeln!(
        io::stdout(),
        "{count} settings have their defaults\n  hint: bailiwick config{project} --all shows them"
    )
}

fn print(rows: &[SettingRow]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let widest = |text: fn(&SettingRow) -> &str, most: usize| {
        let widths = rows.iter().map(|row| text(row).chars().count());
        widths.max().unwrap_or_default().min(most)
    };
    let (names, values) = (widest(|row| &row.name, 32), widest(|row| &row.shown, 40));
    for SettingRow { name, shown, origin, ignored, .. } in rows {
        let note = if *ignored { "  not trusted: no effect" } else { "" };
        writeln!(out, "{name:<names$}  {shown:<values$}  {origin}{note}")?;
    }
    out.flush()
}

#[derive(Serialize)]
struct JsonRow<'a> {
    key: &'a str,
    value: &'a Json,
    origin: &'a str,
    /// The flag, variable or file that set the value; `None` for a default.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ignored: bool,
}

fn print_json(rows: &[SettingRow]) -> io::Result<()> {
    let rows: Vec<_> = rows.iter().map(json_row).collect();
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &json!({ "settings": rows }))?;
    writeln!(out)
}

fn json_row(row: &SettingRow) -> JsonRow<'_> {
    let from = match &row.origin {
        ConfigOrigin::Default | ConfigOrigin::Catalogue => None,
        ConfigOrigin::User(place) | ConfigOrigin::Project(place) => Some(place.file.display().to_string()),
        ConfigOrigin::Flag(name) | ConfigOrigin::Environment(name) => Some((*name).to_owned()),
    };
    JsonRow {
        key: &row.name,
        value: &row.json,
        origin: row.origin.as_str(),
        from,
        line: row.origin.place().map(|place| place.line),
        ignored: row.ignored,
    }
}

fn json_value(value: &Value, kind: Kind) -> Json {
    let word = |word: &std::ffi::OsString| Json::from(word.to_string_lossy());
    match value {
        Value::Text(text) => json!(text),
        Value::Number(number) => json!(number),
        Value::Amount(amount) => json!(amount),
        Value::Time(time) if time.subsec_nanos() == 0 => json!(time.as_secs()),
        Value::Time(time) => json!(time.as_secs_f64()),
        Value::Switch(on) => json!(on),
        Value::Network(Network::Hosts(hosts)) => json!(hosts),
        Value::Network(net @ (Network::Off | Network::On)) => json!(net.flag()),
        Value::List(elements) => elements
            .iter()
            .map(|element| match kind {
                Kind::Commands => element.words.iter().map(word).collect(),
                _ => element.words.first().map_or(Json::Null, word),
            })
            .collect(),
    }
}
