-- A write, read back.
call('SET', root .. 'probe', now)
return { call('INCR', KEYS[1]), call('GET', root .. 'probe') == tostring(now) and 1 or 0 }
