/**
 * Anthropic's API, and servers that speak it (with `base_url`). Paths from Anthropic's own client (@anthropic-ai/sdk 1.12.0). In no scope
 * on purpose: the organisation, its keys and members; vaults, tunnels and profiles of users, which hold or answer with credentials; the
 * queue of an environment's workers; and new skills.
 * What is in beta is asked with the header `anthropic-beta`, which agents send.
 */
import type { ManifestInput } from '../manifest.ts';

export const anthropic = {
  kind: 'rest',
  name: 'Anthropic',
  docs: 'https://docs.anthropic.com/en/api/overview',
  base_url: 'https://api.anthropic.com',
  auth: { type: 'header', name: 'x-api-key' },
  headers: { 'anthropic-version': '2023-06-01' },
  client_headers: ['anthropic-beta'],
  // As long as its own client waits: a model that thinks may say nothing for minutes.
  idle_seconds: 600,
  error_body: { type: 'error', error: { type: 'permission_error', message: '{detail}' } },
  bodies: { 'POST /v1/files': 'multipart' },
  scopes: {
    'anthropic:models.read': ['GET /v1/models', 'GET /v1/models/*', 'POST /v1/messages/count_tokens'],
    // Costs money by length. A message may use tools of Anthropic (search, code, MCP servers) that the body names.
    'anthropic:inference.run': ['POST /v1/messages'],
    'anthropic:batches.read': [
      'GET /v1/messages/batches',
      'GET /v1/messages/batches/*',
      'GET /v1/messages/batches/*/results',
    ],
    'anthropic:batches.write': ['POST /v1/messages/batches', 'POST /v1/messages/batches/*/cancel'],
    'anthropic:batches.delete': ['DELETE /v1/messages/batches/*'],
    'anthropic:files.read': ['GET /v1/files', 'GET /v1/files/*', 'GET /v1/files/*/content'],
    'anthropic:files.write': ['POST /v1/files'],
    'anthropic:files.delete': ['DELETE /v1/files/*'],
    'anthropic:skills.read': [
      'GET /v1/skills',
      'GET /v1/skills/*',
      'GET /v1/skills/*/versions',
      'GET /v1/skills/*/versions/*',
      'GET /v1/skills/*/versions/*/content',
    ],
    'anthropic:skills.delete': ['DELETE /v1/skills/*', 'DELETE /v1/skills/*/versions/*'],
    'anthropic:agents.read': [
      'GET /v1/agents',
      'GET /v1/agents/*',
      'GET /v1/agents/*/versions',
      'GET /v1/deployments',
      'GET /v1/deployments/*',
      'GET /v1/deployment_runs',
      'GET /v1/deployment_runs/*',
      'GET /v1/environments',
      'GET /v1/environments/*',
    ],
    'anthropic:agents.write': [
      'POST /v1/agents',
      'POST /v1/agents/*',
      'POST /v1/agents/*/archive',
      'POST /v1/deployments',
      'POST /v1/deployments/*',
      'POST /v1/deployments/*/archive',
      'POST /v1/deployments/*/pause',
      'POST /v1/deployments/*/run',
      'POST /v1/deployments/*/unpause',
      'POST /v1/environments',
      'POST /v1/environments/*',
      'POST /v1/environments/*/archive',
    ],
    'anthropic:agents.delete': ['DELETE /v1/environments/*'],
    'anthropic:sessions.read': [
      'GET /v1/sessions',
      'GET /v1/sessions/*',
      'GET /v1/sessions/*/events',
      'GET /v1/sessions/*/events/stream',
      'GET /v1/sessions/*/resources',
      'GET /v1/sessions/*/resources/*',
      'GET /v1/sessions/*/threads',
      'GET /v1/sessions/*/threads/*',
      'GET /v1/sessions/*/threads/*/events',
      'GET /v1/sessions/*/threads/*/stream',
    ],
    // A session runs an agent with its tools, for money.
    'anthropic:sessions.write': [
      'POST /v1/sessions',
      'POST /v1/sessions/*',
      'POST /v1/sessions/*/archive',
      'POST /v1/sessions/*/events',
      'POST /v1/sessions/*/resources',
      'POST /v1/sessions/*/resources/*',
      'POST /v1/sessions/*/threads/*/archive',
    ],
    'anthropic:sessions.delete': ['DELETE /v1/sessions/*', 'DELETE /v1/sessions/*/resources/*'],
    'anthropic:memory.read': [
      'GET /v1/memory_stores',
      'GET /v1/memory_stores/*',
      'GET /v1/memory_stores/*/memories',
      'GET /v1/memory_stores/*/memories/*',
      'GET /v1/memory_stores/*/memory_versions',
      'GET /v1/memory_stores/*/memory_versions/*',
    ],
    'anthropic:memory.write': [
      'POST /v1/memory_stores',
      'POST /v1/memory_stores/*',
      'POST /v1/memory_stores/*/archive',
      'POST /v1/memory_stores/*/memories',
      'POST /v1/memory_stores/*/memories/*',
    ],
    'anthropic:memory.delete': [
      'DELETE /v1/memory_stores/*',
      'DELETE /v1/memory_stores/*/memories/*',
      'POST /v1/memory_stores/*/memory_versions/*/redact',
    ],
  },
  presets: {
    read: [
      'anthropic:models.read',
      'anthropic:batches.read',
      'anthropic:files.read',
      'anthropic:skills.read',
      'anthropic:agents.read',
      'anthropic:sessions.read',
      'anthropic:memory.read',
    ],
    inference: ['anthropic:models.read', 'anthropic:inference.run'],
    everything: ['*'],
  },
} satisfies ManifestInput;
