-- Extends leases that still hold, lapsed or not. KEYS[2..]: the deliveries; ARGV[6..]: per item its
-- fence and nonce. Per item: whether it is held.
local now = clock()
local answers = {}
for item = 2, #KEYS do
  local key, fence, nonce = KEYS[item], tonumber(ARGV[item * 2 + 2]), ARGV[item * 2 + 3]
  local d = front(key)
  local held = d and d.state == SENDING and d.fence == fence and d.nonce == nonce
  if held then
    local lapse = now + d.lease
    -- Never the same as before: a renewal is to be seen.
    if lapse == d.lapse then lapse = lapse + 1 end
    call('SETRANGE', key, LAPSE_FROM, pack('>I6', lapse))
    lease(sub(key, #root + 2), lapse)
  end
  answers[item - 1] = held and 1 or 0
end
return { finish(), answers }
