-- Added to write.lua, before appends.lua, for writes that end a response. KEYS: last the response.
-- ARGV: last as in in_scope.lua. Reply: as in write.lua; `J` and the answer of an earlier end; or a refusal.
--+ items
local response = table.remove(KEYS)
local step_args, channel = take_step(ARGV)
--+ step
local step_refusal, its_response = plan_step(response, key, m, step_args, ahead)
if step_refusal then return step_refusal end
--+ append
do_step(response, key, its_response, step_args, channel, ahead)
