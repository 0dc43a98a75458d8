-- Contents of attachments. KEYS[2..]: where they stand. Per item: the content, or nothing.
local answers = {}
for item = 2, #KEYS do answers[item - 1] = call('HGET', KEYS[item], 'content') end
return { seq, answers }
