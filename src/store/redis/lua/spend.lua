-- Records that a call is about to be made. KEYS[2..]: the deliveries; ARGV[6..]: per item its fence,
-- nonce and rev. Per item: 1 done, 2 stale, 3 gone, or the delivery that it has moved on to.
local answers = {}
for item = 2, #KEYS do
  local key, at = KEYS[item], 6 + (item - 2) * 3
  local fence, nonce, rev = tonumber(ARGV[at]), ARGV[at + 1], tonumber(ARGV[at + 2])
  local d = front(key)
  local answer = 1
  if not d then
    answer = 3
  elseif not held_by(d, fence, nonce) then
    answer = 2
  elseif d.rev == rev then
    if not has(d.flags, SPENT) then d.flags = d.flags + SPENT end
    call('SETRANGE', key, CLAIM_FROM, pack('>BBI6I6', SENDING, d.flags, d.ended, d.rev + 1))
  elseif not (has(d.flags, SPENT) and d.rev == rev + 1) then
    -- Not the same spend again, whose reply was lost.
    answer = call('GET', key)
  end
  answers[item - 1] = answer
end
return { finish(), answers }
