use super::results::{Cell, Section};
use super::tables::Run;

const WIDTH: usize = 960;
const MARGIN: usize = 24;
const HEADER_HEIGHT: usize = 84;
const PANEL_WIDTH: usize = (WIDTH - 3 * MARGIN) / 2;
const PANEL_HEIGHT: usize = 230;
const BAR_HEIGHT: usize = 26;
const NAMES_WIDTH: usize = 168;
const LABELS_WIDTH: usize = 136;

/// Colours for light and dark mode. The picture has its own background, because the surrounding page may ignore the
/// browser's preferred mode.
const STYLE: &str = "\
    svg{--page:#fff;--text:#1f2328;--quiet:#59636e;--server:#2a6fdb;--redis:#d9822b;--line:#d1d9e0}\
    @media(prefers-color-scheme:dark){svg{--page:#0d1117;--text:#e6edf3;--quiet:#9198a1;\
    --server:#5b9bff;--redis:#e3a05a;--line:#30363d}}\
    text{font:13px system-ui,sans-serif;fill:var(--text)}\
    .title{font-size:17px;font-weight:600}.panel{font-size:14px;font-weight:600}\
    .quiet{fill:var(--quiet)}.end{text-anchor:end}.ours{font-weight:700}\
    .page{fill:var(--page)}.server{fill:var(--server)}.redis{fill:var(--redis)}";

pub(super) fn draw(sections: &[Section], run: &Run) -> String {
    let height = HEADER_HEIGHT + sections.len().div_ceil(2) * PANEL_HEIGHT + 2 * MARGIN;
    let mut picture = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">
<title>CPU time of a request, server and Redis: threadkeep and others</title>
<style>{STYLE}</style>
<rect class="page" width="{WIDTH}" height="{height}" rx="8"/>
"#
    );
    picture += &text(
        MARGIN,
        36,
        "title",
        "CPU time of a request, in microseconds",
    );
    let squares = [(MARGIN, "server"), (MARGIN + 84, "redis")];
    for (x, class) in squares {
        picture += &rectangle(x, 52, 12, 12, class);
    }
    picture += &text(MARGIN + 18, 63, "", "server");
    picture += &text(MARGIN + 102, 63, "", "Redis");
    let legend = "shorter is better; × is the server's share against threadkeep's";
    picture += &text(MARGIN + 170, 63, "quiet", legend);
    for (index, section) in sections.iter().enumerate() {
        let x = MARGIN + index % 2 * (PANEL_WIDTH + MARGIN);
        let y = HEADER_HEIGHT + index / 2 * PANEL_HEIGHT;
        picture += &panel(section, x, y);
    }
    let footer = format!("{} — {}", run.command, run.machine);
    picture += &text(MARGIN, height - 18, "quiet", &footer);
    picture + "</svg>\n"
}

fn panel(section: &Section, x: usize, y: usize) -> String {
    let mut panel = text(x, y + 16, "panel", section.operation.name());
    let total = |cell: &Cell| cell.server_cpu() + cell.redis_cpu();
    let longest = section.measured().map(|(_, cell)| total(cell));
    let longest = longest.fold(0.0, f64::max);
    let width = (PANEL_WIDTH - NAMES_WIDTH - LABELS_WIDTH) as f64;
    let length = |micros: f64| (micros / longest * width).round() as usize;
    let ours = section.product().server_cpu();
    for (index, (name, cell)) in section.measured().enumerate() {
        let y = y + 28 + index * BAR_HEIGHT;
        let class = if index == 0 { "ours" } else { "" };
        panel += &text(x + NAMES_WIDTH - 8, y + 16, &format!("end {class}"), name);
        let server = length(cell.server_cpu()).max(1);
        let redis = length(total(cell)).max(server + 1) - server;
        panel += &rectangle(x + NAMES_WIDTH, y + 3, server, BAR_HEIGHT - 8, "server");
        panel += &rectangle(
            x + NAMES_WIDTH + server,
            y + 3,
            redis,
            BAR_HEIGHT - 8,
            "redis",
        );
        let ratio = match index {
            0 => String::new(),
            _ => format!(" · {}×", short(cell.server_cpu() / ours)),
        };
        let label = format!(
            "{} + {}{ratio}",
            short(cell.server_cpu()),
            short(cell.redis_cpu())
        );
        panel += &text(x + NAMES_WIDTH + server + redis + 6, y + 16, class, &label);
    }
    panel
}

fn short(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

fn text(x: usize, y: usize, class: &str, text: &str) -> String {
    format!("<text x=\"{x}\" y=\"{y}\" class=\"{class}\">{text}</text>\n")
}

fn rectangle(x: usize, y: usize, width: usize, height: usize, class: &str) -> String {
    format!(r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" class="{class}"/>"#) + "\n"
}
