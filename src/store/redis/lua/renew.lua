-- Extends leases that still hold, lapsed or not. KEYS[2..]: the deliveries; ARGV[6..]: per item its
-- token. Per item: whether it is held.
local now = clock()
local answers = {}
for item = 2, #KEYS do
  local key = KEYS[item]
  local raw = front(key)
  local held = raw and held_by(raw, ARGV[item + 4])
  if held then
    local lapse = now + six(raw, 82)
    -- Never the same as before: a renewal is to be seen.
    if lapse == six(raw, 52) then lapse = lapse + 1 end
    call('SETRANGE', key, 51, pack('>I6', lapse))
    lease(sub(key, #root + 2), lapse)
  end
  answers[item - 1] = held and 1 or 0
end
return { finish(), answers }
