use super::results::{Cell, Section};

pub(super) struct Run {
    pub(super) command: String,
    pub(super) machine: String,
    pub(super) versions: Vec<String>,
}

pub(super) fn page(sections: &[Section], run: &Run) -> String {
    let mut page = format!(
        "# Results\n\n\
         Written by `{}`; [README.md](README.md) says what is measured and how.\n\n\
         {}. One worker or process each, 32 keep-alive connections, everything on one machine.\n\n",
        run.command, run.machine
    );
    for line in &run.versions {
        page += &format!("- {line}\n");
    }
    page += "\n![CPU of a request, server and Redis](peers.svg)\n\n## CPU of the server\n\n\
             Microseconds for each request, and how many times what threadkeep takes. The floor is an actix handler that \
             answers 200 bytes from memory; where the answer is 256 KiB, the floor's is too.\n\n";
    page += &summary(sections, Cell::server_cpu);
    page += "\n## CPU of the server and of Redis together\n\n";
    page += &summary(sections, |cell| cell.server_cpu() + cell.redis_cpu());
    for section in sections {
        page += &format!("\n## {}\n\n{}", section.operation.name(), table(section));
    }
    let percent = |value: fn(&Cell) -> f64, divisor| statistic(sections, value, divisor) * 100.0;
    page += &format!(
        "\nEvery figure is the median of the rounds. Of the server's CPU, the rounds lie {:.0} % apart at \
         the median and {:.0} % at the most. Other processes had {:.0} % of the machine at the median \
         and {:.0} % at the most.\n",
        percent(Cell::spread, 2),
        percent(Cell::spread, 1),
        percent(Cell::others, 2),
        percent(Cell::others, 1),
    );
    page
}

fn summary(sections: &[Section], value: impl Fn(&Cell) -> f64) -> String {
    let names: Vec<_> = sections[0].peers.iter().map(|(name, _)| *name).collect();
    let mut table = format!(
        "| request | floor | {} |\n|---|---:{}|\n",
        names.join(" | "),
        "|---:".repeat(names.len())
    );
    for section in sections {
        let ours = value(section.product());
        table += &format!(
            "| {} | {:.1}",
            section.operation.name(),
            value(&section.floor)
        );
        for (index, (_, cell)) in section.peers.iter().enumerate() {
            table += &match (index, cell.as_ref().map(&value)) {
                (_, None) => " |".into(),
                (0, Some(ours)) => format!(" | **{ours:.1}**"),
                (_, Some(theirs)) => format!(" | {theirs:.1} ({:.1}×)", theirs / ours),
            };
        }
        table += " |\n";
    }
    table
}

fn table(section: &Section) -> String {
    let mut table = String::from(
        "| server | server CPU, µs | of the floor | Redis CPU, µs | requests/s | p50, µs | p99, µs |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
    );
    let floor = &section.floor;
    let floors = [(section.operation.floor().name(), floor)];
    for (name, cell) in floors.into_iter().chain(section.measured()) {
        table += &format!(
            "| {name} | {:.1} | {:.2} | {:.1} | {:.0} | {:.0} | {:.0} |\n",
            cell.server_cpu(),
            cell.server_cpu() / floor.server_cpu(),
            cell.redis_cpu(),
            cell.requests_per_second(),
            cell.p50(),
            cell.p99(),
        );
    }
    if let Some(cell) = &section.plain_get {
        table += &format!(
            "| Redis alone, `GET` of 256 KiB | | | {:.1} | {:.0} | {:.0} | {:.0} |\n\n\
             Redis takes {:.2} times as much for threadkeep as for a plain `GET`.\n",
            cell.redis_cpu(),
            cell.requests_per_second(),
            cell.p50(),
            cell.p99(),
            section.product().redis_cpu() / cell.redis_cpu(),
        );
    }
    table
}

/// Returns the median of the results if `divisor` is 2, or the maximum if `divisor` is 1.
fn statistic(sections: &[Section], value: fn(&Cell) -> f64, divisor: usize) -> f64 {
    let cells = sections.iter().flat_map(|section| {
        let peers = section.measured().map(|(_, cell)| cell);
        peers.chain([&section.floor])
    });
    let mut values: Vec<f64> = cells.map(value).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / divisor - 1]
}
