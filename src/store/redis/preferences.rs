//! What recipients want: one text each, under the shard that the recipient's key says. What is changed is written over
//! what was read.

use async_trait::async_trait;
use belfry_domain::Key;
use redis::Value;

use super::answers;
use super::codec::{Result, corrupt};
use super::link::{Call, Need};
use super::store::RedisStore;
use crate::ports::StoreError;
use crate::ports::preferences::{Kept, Person, PreferenceBook, Wishes};

fn text(wishes: Option<&Wishes>) -> Result<Vec<u8>> {
    let Some(wishes) = wishes else { return Ok(Vec::new()) };
    serde_json::to_vec(wishes).map_err(|_| StoreError::Corrupt("preferences cannot be written".into()))
}

fn read(value: Value) -> Kept {
    let text = answers::bytes(value)?;
    if text.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(&text).map(Some).map_err(|_| corrupt("preferences"))
}

#[async_trait]
impl PreferenceBook for RedisStore {
    async fn write(&self, whom: &Person, before: Option<&Wishes>, next: Option<&Wishes>) -> Result<bool> {
        let key = self.names.preferences(&whom.key());
        let answer = self.preferences_verb("write", vec![key], vec![text(before)?, text(next)?], Need::Durable).await?;
        Ok(answers::number(&answer)? == 1)
    }

    async fn preferences(&self, whom: Vec<Person>) -> Vec<Kept> {
        let people: Vec<Key> = whom.iter().map(Person::key).collect();
        self.of_each(&people, |people| self.preferences_in_one(people)).await
    }
}

impl RedisStore {
    /// Of recipients of one shard.
    async fn preferences_in_one(&self, people: Vec<Key>) -> Vec<Kept> {
        let count = people.len();
        let keys = people.iter().map(|person| self.names.preferences(person)).collect();
        match self.preferences_verb("find", keys, Vec::new(), Need::Done).await.and_then(answers::list) {
            Ok(told) if told.len() == count => told.into_iter().map(read).collect(),
            Ok(_) => vec![Err(corrupt("an answer")); count],
            Err(away) => vec![Err(away); count],
        }
    }

    async fn preferences_verb(&self, verb: &str, keys: Vec<Vec<u8>>, args: Vec<Vec<u8>>, need: Need) -> Result<Value> {
        self.same_installation()?;
        let mut all = vec![verb.as_bytes().to_vec()];
        all.extend(args);
        let call = Call { script: &self.scripts.preferences, keys, args: all, need, generation: None };
        let [answer] = answers::parts(self.link.run(call).await?)?;
        Ok(answer)
    }
}
