-- The newest versions of collapse groups. ARGV[5..]: the groups.
return { seq, call('HMGET', root .. 'groups', unpack(ARGV, 5)) }
