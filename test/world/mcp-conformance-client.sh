# The client that the conformance suite starts for each scenario: asks the test at CONTROL_URL to connect to the suite's server, the last argument.
set -- ${MCP_CONFORMANCE_CONTEXT+--data-urlencode "context=$MCP_CONFORMANCE_CONTEXT"} --data-urlencode "url=$1"
exec curl --silent --show-error --fail-with-body --noproxy '*' --data-urlencode "scenario=$MCP_CONFORMANCE_SCENARIO" "$@" "$CONTROL_URL"
