//! Construction of controllers for many connections: name and options are validated once, then each connection gets a
//! new controller.

use std::fmt;
use std::sync::Arc;

use super::options::{self, Options, Refusal};
use super::{find, Controller, Custom, Make, Shared};
use super::{CongestionControl, Needs};

/// Factory for user-defined controllers, called once per connection.
#[derive(Clone)]
pub struct Maker(Arc<dyn Fn() -> Custom + Send + Sync>);

impl Maker {
    /// Create a factory that calls `make`.
    pub fn new(make: impl Fn() -> Custom + Send + Sync + 'static) -> Maker {
        Maker(Arc::new(make))
    }

    /// Make a controller.
    pub fn make(&self) -> Custom {
        (self.0)()
    }
}

#[derive(Clone)]
enum Source {
    BuiltIn(&'static str, Options, Make),
    Own(Maker),
}

/// A validated recipe for controllers of one kind.
#[derive(Clone)]
pub struct Recipe {
    source: Source,
    shared: Shared,
    needs: Needs,
}

impl Recipe {
    /// Create the recipe for the built-in controller `name` with these options; unknown names and options are
    /// rejected.
    pub fn new(name: &str, options: &Options, shared: Shared) -> Result<Recipe, Refusal> {
        let entry = find(name)?;
        let make = (entry.maker)(&options::named(name, options, entry.options)?, shared)?;
        Ok(Recipe::of(Source::BuiltIn(entry.name, options.clone(), make), shared))
    }

    /// Create the recipe for the built-in controller `name` with its defaults, if the name is known.
    pub fn by_name(name: &str) -> Option<Recipe> {
        Recipe::new(name, &Options::new(), Shared::default()).ok()
    }

    /// Create the recipe for a user-defined controller. One instance is made immediately, to query its needs.
    pub fn own(maker: Maker) -> Recipe {
        Recipe::of(Source::Own(maker), Shared::default())
    }

    fn of(source: Source, shared: Shared) -> Recipe {
        let recipe = Recipe { source, shared, needs: Needs::default() };
        Recipe { needs: recipe.make().needs(), ..recipe }
    }

    /// Make a controller for a new connection.
    pub fn make(&self) -> Controller {
        match &self.source {
            Source::BuiltIn(_, _, make) => make(),
            Source::Own(maker) => Controller::Custom(maker.make()),
        }
    }

    /// Needs of the controllers made by this recipe.
    #[inline]
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// Stack settings shared by all controllers that support them.
    pub fn shared(&self) -> Shared {
        self.shared
    }
}

impl fmt::Debug for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::BuiltIn(name, options, _) => write!(f, "{name} {options:?}"),
            Source::Own(_) => f.write_str("a user's own controller"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{Reno, Value};
    use crate::window::Window;

    #[test]
    fn each_connection_takes_a_new_controller_with_the_options_given_once() {
        let options = Options::from([("fast_convergence".to_string(), Value::Flag(false))]);
        let shared = Shared { beta_permille: Some(500), ..Shared::default() };
        let recipe = Recipe::new("cubic", &options, shared).expect("known");
        for _ in 0..2 {
            let Controller::Cubic(mut cubic) = recipe.make() else { panic!("cubic") };
            assert!(!cubic.params.fast_convergence);
            assert_eq!(cubic.ssthresh(&Window::new(100), 100), 50);
        }
    }

    #[test]
    fn what_no_controller_knows_is_refused_when_the_recipe_is_written() {
        let refused =
            Recipe::new("reno", &Options::from([("x".into(), Value::Flag(true))]), Shared::default());
        assert_eq!(refused.expect_err("unknown").key, "x");
        assert!(Recipe::by_name("bbrr").is_none());
    }

    #[test]
    fn needs_are_those_of_the_controller_made() {
        let bbr = Recipe::by_name("bbr").expect("registered");
        assert!(bbr.needs().control && bbr.needs().pacing && bbr.needs().rate && bbr.needs().seed);
        let own = Recipe::own(Maker::new(|| Box::new(Reno::default())));
        assert!(!own.needs().control && own.needs().vars.is_empty());
        assert!(matches!(own.make(), Controller::Custom(_)));
    }
}
