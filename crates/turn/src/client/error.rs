//! Errors of an allocation, from the relay's answers.

use turn_types::stun::attribute::ErrorCode;
use turn_types::stun::message::Message;

/// Why a relay cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// 401, or 441: the user or the password is wrong.
    #[error("the relay does not accept this user and password (error 401)")]
    NotAuthorised,
    /// 403: a rule of the relay forbids it.
    #[error(
        "the relay refuses to forward to this peer (error 403); its operator decides which \
         addresses it forwards to"
    )]
    Forbidden,
    /// 437: the relay knows no allocation of ours, or one that it does not give back.
    #[error("the relay and we disagree about what is allocated (error 437)")]
    Mismatch,
    /// 440: no address of this family.
    #[error("the relay has no address of this family to give (error 440)")]
    AddressFamily,
    /// 486: the user has as many allocations as allowed.
    #[error(
        "this user has as many allocations on the relay as it allows (error 486); end other \
         programs that use it, or wait until theirs expire"
    )]
    Quota,
    /// 508: the relay is full.
    #[error("the relay has no room left (error 508); try again later")]
    Full,
    /// Another error.
    #[error("the relay refuses with error {code}: {reason}")]
    Other {
        /// The error code of STUN.
        code: u16,
        /// The relay's words.
        reason: String,
    },
    /// Nothing came back.
    #[error("the relay does not answer; check that it runs, its address, and that UDP reaches it")]
    NoAnswer,
}

impl ClientError {
    /// The error of an answer.
    pub(super) fn of(message: &Message<'_>) -> ClientError {
        let Ok(error) = message.attribute::<ErrorCode>() else {
            return ClientError::Other { code: 0, reason: "no error code".to_owned() };
        };
        match error.code() {
            ErrorCode::UNAUTHORIZED | ErrorCode::WRONG_CREDENTIALS => ClientError::NotAuthorised,
            ErrorCode::FORBIDDEN => ClientError::Forbidden,
            ErrorCode::ALLOCATION_MISMATCH => ClientError::Mismatch,
            ErrorCode::ADDRESS_FAMILY_NOT_SUPPORTED => ClientError::AddressFamily,
            ErrorCode::ALLOCATION_QUOTA_REACHED => ClientError::Quota,
            ErrorCode::INSUFFICIENT_CAPACITY => ClientError::Full,
            code => {
                // What a stranger says may end up on a terminal.
                let words = error.reason().chars().filter(|c| !c.is_control()).take(80);
                ClientError::Other { code, reason: words.collect() }
            }
        }
    }

    /// True if trying again cannot help.
    pub fn is_final(&self) -> bool {
        matches!(self, ClientError::NotAuthorised)
    }
}
