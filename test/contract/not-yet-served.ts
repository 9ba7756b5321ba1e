/**
 * Routes of the specification that the broker does not serve yet, by name. The contract test fails for an entry as soon as
 * its route is served: take it out then, so that everything else is asked of it.
 */
export const NOT_YET_SERVED: readonly string[] = [
  'POST /v1/consent/caller/start',
  'GET /v1/consent/caller/status/{token}',
  'POST /v1/authzen/access',
  'POST /v1/trqp/authorization',
  'POST /v1/trqp/recognition',
  'POST /v1/agents/children',
  'POST /v1/bind-secret',
  'GET /git/{owner}/{repo}/info/refs',
  'POST /git/{owner}/{repo}/git-upload-pack',
  'POST /git/{owner}/{repo}/git-receive-pack',
  'GET /.well-known/svc-attestation',
  'GET /.well-known/authzen-configuration',
  'POST /lab/mcp',
];
