-- What is left of an intent whose record is gone. ARGV[5]: its id.
return { seq, call('HGET', tomb_of(ARGV[5], tombs()), ARGV[5]) }
