-- Whether a key is there: for the wait until what was written to it is durable.
return redis.call('EXISTS', KEYS[1])
