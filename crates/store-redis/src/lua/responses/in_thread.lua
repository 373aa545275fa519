-- Parts that are inserted into write.lua, before the parts from appends.lua, for a write that ends a response.
-- KEYS: as in write.lua, then the response. ARGV: as in write.lua, then the arguments that in_scope.lua appends.
-- Reply: as in write.lua; or `J` and the answer of a response that has already ended; or a refusal.
--+ items
local response = table.remove(KEYS)
local step_args, channel = take_step(ARGV)
--+ step
local step_refusal, step_response = plan_step(response, key, m, step_args, ahead)
if step_refusal then return step_refusal end
--+ append
do_step(response, key, step_response, step_args, channel, ahead)
