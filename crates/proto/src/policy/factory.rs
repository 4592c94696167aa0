//! Policies as values: how an association gets its own policy of each family.

use std::fmt;
use std::sync::Arc;

use crate::params::{ConfigError, Params};

/// Makes the policies of one family: one for each association, or for congestion control one for
/// each path.
///
/// A factory is one of manypath's, found by [name](Factory::named), or a program's
/// [own](Factory::new). Two factories are equal if they are the same one.
pub struct Factory<P: ?Sized + 'static>(Source<P>);

enum Source<P: ?Sized + 'static> {
    Known(&'static Known<P>),
    Own(Arc<Own<P>>),
}

/// A line of a family's registry.
pub struct Known<P: ?Sized + 'static> {
    pub(crate) name: &'static str,
    pub(crate) new: fn(&Params) -> Box<P>,
}

struct Own<P: ?Sized + 'static> {
    name: String,
    new: Box<New<P>>,
}

type New<P> = dyn Fn(&Params) -> Box<P> + Send + Sync;

/// A family of policies: the trait that they implement, as in `dyn Scheduler`.
pub trait Family: 'static {
    /// The policies that manypath has.
    const KNOWN: &'static [Known<Self>];
    /// Their names, in the same order.
    const NAMES: &'static [&'static str];
}

impl<P: Family + ?Sized> Factory<P> {
    /// The names of the policies that manypath has.
    pub const NAMES: &'static [&'static str] = P::NAMES;

    /// The policy that manypath has under this name.
    pub fn named(name: &str) -> Option<Self> {
        P::KNOWN.iter().find(|known| known.name == name).map(|known| Self(Source::Known(known)))
    }

    /// A policy of a program's own. `new` is called with the configuration for each association, or
    /// for congestion control for each path.
    ///
    /// The family has to be named, as in `Factory::<dyn Scheduler>::new("mine", ...)`: the compiler
    /// does not infer it. A configuration prints `name`; text cannot choose the policy by it.
    ///
    /// # Errors
    /// If `name` is that of one of manypath's policies, or holds anything but letters,
    /// digits, `-` and `_`.
    pub fn new(
        name: impl Into<String>,
        new: impl Fn(&Params) -> Box<P> + Send + Sync + 'static,
    ) -> Result<Self, ConfigError> {
        let name = name.into();
        let is_word = !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        if !is_word || P::NAMES.contains(&name.as_str()) {
            let allowed =
                "must be of letters, digits, - and _, and no name that manypath has taken";
            return Err(ConfigError::new("policy", &name, allowed));
        }
        Ok(Self(Source::Own(Arc::new(Own { name, new: Box::new(new) }))))
    }

    /// A policy as `config` wants it.
    pub fn build(&self, config: &Params) -> Box<P> {
        match &self.0 {
            Source::Known(known) => (known.new)(config),
            Source::Own(own) => (own.new)(config),
        }
    }
}

/// The policy of that name, for constants. An unknown name is a compile-time error.
pub(crate) const fn known<P: Family + ?Sized>(name: &str) -> Factory<P> {
    let mut at = 0;
    while at < P::KNOWN.len() {
        if is_same(P::KNOWN[at].name, name) {
            return Factory(Source::Known(&P::KNOWN[at]));
        }
        at += 1;
    }
    panic!("there is no policy of that name");
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

impl<P: ?Sized + 'static> Factory<P> {
    /// Its name in configuration.
    pub fn name(&self) -> &str {
        match &self.0 {
            Source::Known(known) => known.name,
            Source::Own(own) => &own.name,
        }
    }
}

impl<P: ?Sized + 'static> Clone for Factory<P> {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Source::Known(known) => Source::Known(known),
            Source::Own(own) => Source::Own(Arc::clone(own)),
        })
    }
}

impl<P: ?Sized + 'static> PartialEq for Factory<P> {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Source::Known(a), Source::Known(b)) => a.name == b.name,
            (Source::Own(a), Source::Own(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl<P: ?Sized + 'static> fmt::Debug for Factory<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.name(), f)
    }
}

impl<P: ?Sized + 'static> fmt::Display for Factory<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::policy::PolicyCx;
    use crate::policy::sched::Scheduler;
    use crate::view::PathId;

    #[derive(Debug)]
    struct Never;

    impl Scheduler for Never {
        fn choose(&mut self, _cx: &mut PolicyCx<'_>) -> Option<PathId> {
            None
        }
    }

    fn own(name: &str) -> Result<Factory<dyn Scheduler>, ConfigError> {
        Factory::<dyn Scheduler>::new(name, |_| Box::new(Never))
    }

    #[test]
    fn every_name_of_a_family_makes_a_policy() {
        for name in Factory::<dyn Scheduler>::NAMES {
            let factory = Factory::<dyn Scheduler>::named(name).expect("a name");
            assert_eq!(factory.name(), *name);
            factory.build(&Config::default());
        }
        assert_eq!(Factory::<dyn Scheduler>::named("nearest"), None);
        assert_eq!(Some(known::<dyn Scheduler>("primary")), Factory::named("primary"));
    }

    #[test]
    fn a_program_brings_its_own() {
        let mine = own("mine").expect("a name of its own");
        assert_eq!((&mine, mine.to_string()), (&mine.clone(), "mine".to_owned()));
        assert_ne!(mine, own("mine").expect("a name"), "another policy of the same name");
        assert_eq!(format!("{:?}", mine.build(&Config::default())), "Never");
        for taken in ["primary", "", "two words", "\"quoted\""] {
            assert_eq!(own(taken).expect_err("no name").value, taken);
        }
    }

    #[test]
    fn a_configuration_holds_and_prints_it() {
        let mine = own("mine").expect("a name of its own");
        let config = Config { scheduler: mine.clone(), ..Config::default() };
        config.validate().expect("it is a policy as any other");
        assert_eq!(config.clone(), config);
        assert_ne!(config, Config::default());
        assert_eq!(config.get("scheduler").as_deref(), Ok("mine"));
        assert!(config.to_string().contains("\nscheduler "), "{config}");
        let text = config.to_toml();
        let error = Config::from_toml_str(&text).expect_err("text cannot bring code");
        assert_eq!((error.field.as_str(), error.value.as_str()), ("scheduler", "mine"));
    }
}
