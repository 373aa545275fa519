-- Parts that are inserted into write_scope.lua for a write that is a step of a response.
-- KEYS: as in write_scope.lua, then the response.
-- ARGV: as in write_scope.lua, then the channel, the arguments for `plan_step`, and the number of these arguments + 1.
-- Reply: as in write_scope.lua; or `J` and the outcome of an earlier attempt of the step; or a refusal.
--+ keys
local response = table.remove(KEYS)
--+ step
local step_args, channel = take_step(ARGV)
local step_thread = thread or refused and living(k.thread, ahead)
local step_refusal, step_response = plan_step(response, k.thread, step_thread, step_args, ahead)
if step_refusal then return step_refusal end
--+ done
do_step(response, k.thread, step_response, step_args, channel, ahead)
