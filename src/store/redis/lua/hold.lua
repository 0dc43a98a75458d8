-- ARGV[6]: 'put' or 'release'; ARGV[7]: what is due at or before it is held. Nothing but this very hold is
-- released; then what was held may be claimed at once. What was released once is not put again: a node that
-- starts meanwhile may still bring it. Answers the hold that stands.
local freed = tonumber(call('GET', root .. 'freed') or '-1')
if ARGV[6] == 'put' and tonumber(ARGV[7]) > freed then
  hold = ARGV[7]
  call('SET', root .. 'hold', hold)
elseif ARGV[6] == 'release' and hold == ARGV[7] then
  call('SET', root .. 'freed', hold)
  hold = false
  call('DEL', root .. 'hold')
  woken = true
end
return { finish(), hold or '' }
