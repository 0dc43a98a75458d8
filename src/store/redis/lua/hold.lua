-- ARGV[6]: 'put' or 'release'; ARGV[7]: what is due at or before it is held. Nothing but this very hold is
-- released; then what was held may be claimed at once. Answers the hold that stands.
if ARGV[6] == 'put' then
  hold = ARGV[7]
  call('SET', root .. 'hold', hold)
elseif ARGV[6] == 'release' and hold == ARGV[7] then
  hold = false
  call('DEL', root .. 'hold')
  woken = true
end
return { finish(), hold or '' }
