use crate::config::Setting;

const TEXT: &str = "\
Settings with their defaults, in the format of threadkeep.toml or of the file that --config names.
An environment variable overrides the file, and a flag overrides the variable.

`threadkeep config` shows the current value and the source of each setting.
";

const MARKDOWN: &str = "\
# Settings

<!-- Generated: cargo run -- settings --markdown > docs/settings.md -->

You can set each of these in `threadkeep.toml` in the working directory (or in the file that `--config` or
`THREADKEEP_CONFIG` names), as an environment variable, or as a flag. A variable overrides the file, and a flag
overrides the variable. The server rejects unknown settings. `threadkeep config` shows the value of each setting and
where it comes from, with secrets masked. [Configuration](configuration.md) explains the settings to decide on.
";

pub(super) fn text() -> String {
    let heading = |group: &str| format!("\n\n{}\n", group.to_uppercase());
    list(TEXT, heading, |setting| {
        let (flag, variable) = (setting.flag(), setting.variable());
        let lines = setting.help.lines().map(|line| format!("    {line}\n"));
        let Setting { name, default, .. } = setting;
        format!("\n{name} = {default}\n    --{flag}, {variable}\n") + &lines.collect::<String>()
    })
}

pub(super) fn markdown() -> String {
    let heading = |group: &str| format!("\n## {group}\n");
    let introduction = MARKDOWN.to_owned() + &index();
    list(&introduction, heading, |setting| {
        let (flag, variable) = (setting.flag(), setting.variable());
        let Setting { name, default, .. } = setting;
        let head = format!(
            "\n### `{name}`\n\nDefault `{default}`. Flag `--{flag}`, variable `{variable}`.\n\n"
        );
        head + &paragraphs(&setting.help)
    })
}

fn index() -> String {
    let mut index = "\n| group | settings |\n|---|---|\n".to_owned();
    for settings in Setting::all().chunk_by(|one, next| one.group == next.group) {
        let links = settings
            .iter()
            .map(|Setting { name, .. }| format!("[`{name}`](#{name})"));
        let links: Vec<_> = links.collect();
        index += &format!("| {} | {} |\n", settings[0].group, links.join(", "));
    }
    index
}

fn list(
    introduction: &str,
    heading: impl Fn(&str) -> String,
    entry: impl Fn(&Setting) -> String,
) -> String {
    let mut list = introduction.to_owned();
    let mut group = "";
    for setting in Setting::all() {
        if setting.group != group {
            group = setting.group;
            list += &heading(group);
        }
        list += &entry(&setting);
    }
    list
}

/// Converts the comment of a setting to Markdown. Indented lines become a code block.
fn paragraphs(help: &str) -> String {
    let mut text = String::new();
    let mut is_code = false;
    for line in help.lines() {
        let code = line.strip_prefix("  ");
        if code.is_some() != is_code {
            is_code = code.is_some();
            text += if is_code { "\n```text\n" } else { "```\n\n" };
        }
        text += code.unwrap_or(line);
        text.push('\n');
    }
    text
}
