//! Parts of a link that not every packet needs: those shared by links of the same configuration, and those needed
//! once a packet waits.

use std::sync::Arc;

use ackclock_core::{Rate, Time};

use super::crowd::Crowd;
use super::extras::Extras;
use super::{Link, LinkConfig};
use crate::capacity::Capacity;
use crate::queue::{DropTail, DropTailParams, Queue, QueueConfig};
use crate::wire::Wire;

/// Parts shared by links with the same configuration.
#[derive(Clone)]
pub struct Recipe {
    pub(super) rate: Rate,
    /// Queue of a plain link.
    pub(super) queue: DropTail,
}

impl Recipe {
    /// Return the recipe of a link with this configuration.
    pub fn of(config: &LinkConfig) -> Arc<Recipe> {
        assert!(config.rate.0 > 0, "invariant: a link's rate is positive");
        let queue = match &config.queue {
            QueueConfig::DropTail(params) => DropTail::new(params),
            _ => DropTail::new(&DropTailParams { limit: None }),
        };
        Arc::new(Recipe { rate: config.rate, queue })
    }
}

/// Parts that a plain link needs once a packet waits, is marked, is lost or needs an event. Any other link has them
/// from the start.
#[derive(Clone)]
pub(super) struct Rest {
    pub(super) wire: Wire,
    pub(super) next: Time,
    /// See [`Link::armed`].
    pub(super) armed: Time,
    pub(super) queue: Queue,
    pub(super) extras: Option<Box<Extras>>,
    pub(super) crowd: Crowd,
}

impl Rest {
    pub(super) fn new(queue: Queue, extras: Option<Box<Extras>>) -> Box<Rest> {
        let (next, armed) = (Time::NEVER, Time::NEVER);
        Box::new(Rest { wire: Wire::default(), next, armed, queue, extras, crowd: Crowd::default() })
    }

    pub(super) fn capacity(&mut self) -> Option<&mut Capacity> {
        self.extras.as_mut().and_then(|extras| extras.capacity.as_mut())
    }
}

#[inline]
pub(super) fn rest_of<'a>(rest: &'a mut Option<Box<Rest>>, recipe: &Recipe) -> &'a mut Rest {
    rest.get_or_insert_with(|| first_rest(recipe))
}

#[cold]
#[inline(never)]
fn first_rest(recipe: &Recipe) -> Box<Rest> {
    Rest::new(Queue::DropTail(recipe.queue.clone()), None)
}

impl Link {
    pub(super) fn extras_or_none(&mut self) -> &mut Extras {
        self.rest().extras.get_or_insert_with(Extras::none)
    }

    #[inline]
    pub(super) fn rest(&mut self) -> &mut Rest {
        rest_of(&mut self.rest, &self.recipe)
    }

    #[inline]
    pub(super) fn crowd(&mut self) -> &mut Crowd {
        &mut self.rest().crowd
    }

    #[inline]
    pub(super) fn extras(&self) -> Option<&Extras> {
        self.rest.as_ref()?.extras.as_deref()
    }

    #[inline]
    pub(super) fn extras_mut(&mut self) -> Option<&mut Extras> {
        self.rest.as_mut()?.extras.as_deref_mut()
    }

    #[inline]
    pub(super) fn capacity(&self) -> Option<&Capacity> {
        self.extras()?.capacity.as_ref()
    }
}
