//! `manypath top`: the live view of other processes.

use manypath_live::Process;
use manypath_live::tui::{self, Board, Source};
use serde_json::json;

use crate::args::TopArgs;
use crate::commands::path::{no_such, refusal};
use crate::control::client::{Heard, ask_each};
use crate::control::protocol::{Answer, Request};
use crate::failure::{Failure, Result};
use crate::live::check_terminal;
use crate::screen::output;
use crate::signals::interrupted;

/// `manypath top`.
pub(crate) async fn run(args: TopArgs) -> Result<()> {
    let mut others = Others { only: args.pid };
    let board = Board::remote();
    if let Some(pid) = args.pid
        && others.look(&board).await.is_empty()
    {
        return Err(no_such(pid));
    }
    if args.json {
        let processes = others.look(&board).await;
        return output::print(&format!("{}\n", json!({ "processes": processes })));
    }
    check_terminal("manypath top").map_err(|f| f.hint("--json prints the figures once"))?;
    tokio::select! {
        ended = tui::run(board, others) => match ended {
            Ok(_) => Ok(()),
            Err(e) => Err(Failure::failed(format!("cannot use the terminal: {e}"))),
        },
        () = interrupted() => Ok(()),
    }
}

/// The processes of this user, or one of them.
struct Others {
    only: Option<u32>,
}

impl Source for Others {
    async fn look(&mut self, board: &Board) -> Vec<Process> {
        let request = |pid| Request::Figures { since_ms: board.since(pid) };
        let heard = ask_each(self.only, request).await.into_iter();
        // One that is hung, or of an older version, has nothing to show.
        let figures = heard.filter_map(|Heard { answer, .. }| match answer {
            Ok(Answer::Figures(process)) => Some(process),
            _ => None,
        });
        figures.collect()
    }

    async fn set_rank(
        &mut self,
        pid: u32,
        association: u64,
        path: u16,
        rank: &'static str,
    ) -> std::result::Result<(), String> {
        let rank = rank.to_owned();
        let request = |_| Request::SetPathRank { association, path, rank: rank.clone() };
        match ask_each(Some(pid), request).await.pop().map(|heard| heard.answer) {
            Some(Ok(Answer::RankSet { .. })) => Ok(()),
            Some(Ok(other)) => Err(refusal(other)),
            Some(Err(error)) => Err(error),
            None => Err(format!("process {pid} has ended")),
        }
    }
}
