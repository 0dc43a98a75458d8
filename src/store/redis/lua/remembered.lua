-- What is left of an intent whose record is gone. ARGV[6]: its id.
return { seq, call('HGET', tomb_of(ARGV[6], tombs()), ARGV[6]) }
