"""Items of all kinds that the client supports, and of one kind that it does not support."""


def items():
    """Returns items that a program may send, with ids where the client requires them."""
    call = {"call_id": "call_1", "status": "completed"}
    sample = [
        {"type": "message", "role": "assistant", "status": "incomplete", "content": [
            {"type": "output_text", "text": "hi", "annotations": [], "logprobs": []},
            {"type": "refusal", "refusal": "no"}]},
        {"type": "message", "role": "user", "status": "completed", "content": [
            {"type": "input_text", "text": "\u00e9\U0001f600\u0000"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto", "file_id": None},
            {"type": "input_file", "file_data": "data:application/pdf;base64,AAAA", "filename": "a.pdf"}]},
        {"type": "function_call", **call, "name": "f", "arguments": "{\"a\": 1}"},
        {"type": "function_call_output", **call, "output": "1"},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "s"}],
         "encrypted_content": "AAAA"},
        {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["q"], "results": None},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "computer_call", "id": "cu_1", **call, "pending_safety_checks": [],
         "action": {"type": "click", "button": "left", "x": 1, "y": 2}},
        {"type": "computer_call_output", "id": "cuo_1", "call_id": "call_1",
         "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}},
        {"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "code": "1", "container_id": "c",
         "outputs": [{"type": "logs", "logs": "1"}]},
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AAAA"},
        {"type": "local_shell_call", "id": "lsh_1", **call,
         "action": {"type": "exec", "command": ["ls"], "env": {"A": "b"}}},
        {"type": "local_shell_call_output", "id": "lsho_1", "output": "a"},
        {"type": "shell_call", **call, "action": {"commands": ["ls"], "timeout_ms": 10}},
        {"type": "shell_call_output", "call_id": "call_1",
         "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]},
        {"type": "apply_patch_call", **call, "operation": {"type": "delete_file", "path": "a"}},
        {"type": "apply_patch_call_output", **call, "output": "done"},
        {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s",
         "tools": [{"name": "t", "input_schema": {"type": "object"}}]},
        {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "t", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "t", "arguments": "{}", "output": "1"},
        {"type": "custom_tool_call", "call_id": "call_1", "name": "t", "input": "a"},
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "b"},
        {"type": "tool_search_call", "status": "completed", "execution": "server", "arguments": {"q": "a"}},
        {"type": "tool_search_output", "status": "completed", "execution": "server", "tools": []},
        {"type": "compaction", "encrypted_content": "AAAA"},
        {"type": "additional_tools", "tools": [], "role": "developer"},
        {"type": "program", "id": "pr_1", "call_id": "call_1", "code": "f()", "fingerprint": "x"},
        {"type": "program_output", "id": "po_1", "call_id": "call_1", "result": "1", "status": "completed"},
        {"type": "of_tomorrow", "big": 9007199254740993, "nested": {"a": [None, 1.5]}},
    ]
    for item in sample:
        # the server adds a missing id to an item
        item.setdefault("id", None)
    return sample
