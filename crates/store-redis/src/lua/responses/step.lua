-- Performs a step of a response in a request without any other write.
-- KEYS: 1 response; if its scope has a thread, 2 the thread. ARGV: 1 `ahead`, 2 channel, then the arguments of `plan_step`.
-- Reply: `K`; or `J` and the outcome of an earlier attempt; or a refusal.
local key, ahead = KEYS[1], tonumber(ARGV[1])
local args = {is_alone = true}
for i = 3, #ARGV do args[i - 2] = ARGV[i] end
local refusal, r, thread = plan_step(key, KEYS[2], KEYS[2] and living(KEYS[2], ahead), args, ahead)
if refusal then return refusal end
-- a full Redis must accept the end of a response, because an ended response can be deleted to free memory
if args[5] ~= '' then write_even_when_full(key) end
do_step(key, thread, r, args, ARGV[2], ahead)
return {'K'}
