-- The newest versions of collapse groups. ARGV[6..]: the groups.
return { seq, call('HMGET', root .. 'groups', unpack(ARGV, 6)) }
