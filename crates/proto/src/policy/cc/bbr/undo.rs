//! Spurious losses, and the state that they changed (draft, section "Updating the Model Upon
//! Detecting a Spurious Loss Recovery").

use super::cycle::State;
use super::{Bbr, Window};

/// The state before the latest losses, while it can be restored.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Undo {
    saved: Option<Saved>,
}

#[derive(Copy, Clone, Debug)]
struct Saved {
    bw_shortterm: f64,
    inflight_shortterm: usize,
    inflight_longterm: usize,
    /// The state that the losses ended (BBR.undo_state).
    state: Option<State>,
}

impl Undo {
    /// Notes the state that losses end.
    pub(super) fn ends(&mut self, state: State) {
        if let Some(saved) = &mut self.saved {
            saved.state = Some(state);
        }
    }
}

impl Bbr {
    /// SaveStateUponLoss.
    ///
    /// Saves once when losses begin, as the text of the draft says. The draft's pseudocode saves in
    /// each round trip with losses, so it would save changes made by the losses before.
    pub(super) fn save_state(&mut self, window: Window) {
        self.cwnd = window.cwnd;
        self.save_cwnd();
        self.undo.saved = Some(Saved {
            bw_shortterm: self.bounds.bw_shortterm,
            inflight_shortterm: self.bounds.inflight_shortterm,
            inflight_longterm: self.bounds.inflight_longterm,
            state: None,
        });
    }

    /// HandleSpuriousLossDetection.
    pub(super) fn restore_state(&mut self, window: Window) -> Window {
        let Some(saved) = self.undo.saved.take() else { return window };
        self.cwnd = window.cwnd;
        self.restore_cwnd();
        self.recovers_from_timeout = false;
        self.full_pipe.reset(0.0);
        let b = &mut self.bounds;
        b.is_loss_in_round = false;
        b.bw_shortterm = b.bw_shortterm.max(saved.bw_shortterm);
        b.inflight_shortterm = b.inflight_shortterm.max(saved.inflight_shortterm);
        b.inflight_longterm = b.inflight_longterm.max(saved.inflight_longterm);
        match saved.state {
            Some(State::Startup) => {
                self.full_pipe.was_reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::ProbeUp) if !matches!(self.state, State::ProbeUp | State::ProbeRtt) => {
                self.start_probe_refill(self.total);
            }
            _ => {}
        }
        Window { cwnd: self.cwnd, ..window }
    }
}
