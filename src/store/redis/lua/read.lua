-- Records with their deliveries. KEYS[2..]: notifications, or one of their deliveries. Per item: the
-- record and each delivery, or nothing. ARGV[6]: 1 without inputs, which can be large.
local answers = {}
for item = 2, #KEYS do
  local key = KEYS[item]
  if sub(key, #root + 1, #root + 1) == 'd' then
    local raw = front(key)
    key = raw and root .. 'n' .. notification_of(raw)
  end
  local raw = key and call('GET', key)
  local answer = {}
  if raw then
    local deliveries = byte(raw, 21)
    if ARGV[6] == '1' then raw = sub(raw, 1, #raw - take('>I4', raw, 48)) end
    answer[1] = raw
    for nth = 1, deliveries do answer[nth + 1] = call('GET', root .. 'd' .. delivery_id(raw, nth)) end
  end
  answers[item - 1] = answer
end
return { seq, answers }
