-- A write, read back.
local now = clock()
call('SET', root .. 'probe', int(now))
return { call('INCR', KEYS[1]), call('GET', root .. 'probe') == int(now) and 1 or 0 }
