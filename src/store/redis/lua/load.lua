-- Deliveries as they stand. KEYS[2..].
local answers = {}
for item = 2, #KEYS do
  answers[item - 1] = call('GET', KEYS[item])
end
return { seq, answers }
