-- Records with their deliveries. KEYS[2..]: notifications, or one of their deliveries. Per item: the
-- record and each delivery, or nothing. ARGV[5]: 1 without inputs, which can be large.
local answers = {}
for item = 2, #KEYS do
  local key = KEYS[item]
  if sub(key, #root + 1, #root + 1) == 'd' then
    local d = front(key)
    key = d and root .. 'n' .. d.nid
  end
  local raw = key and call('GET', key)
  local answer = {}
  if raw then
    local n = notification(raw)
    if ARGV[5] == '1' then raw = sub(raw, 1, #raw - n.inputs) end
    answer[1] = raw
    for place = 1, n.count do answer[place + 1] = call('GET', root .. 'd' .. delivery_id(n, raw, place)) end
  end
  answers[item - 1] = answer
end
return { seq, answers }
