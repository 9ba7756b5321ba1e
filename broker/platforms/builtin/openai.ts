/**
 * OpenAI's API, and servers that speak it (vLLM, Ollama, gateways: with `base_url`, which ends in `/v1` there too). Paths from OpenAI's own
 * client (openai 7.57.0). In no scope on purpose: the organisation, its keys and projects; what answers with a credential
 * for a browser (`/realtime`, `/chatkit`); assistants and threads, which OpenAI has ended; and what takes multipart only, which
 * the broker does not send (new files and their parts, transcriptions, edits of images, skills).
 */
import type { ManifestInput } from '../manifest.ts';

export const openai = {
  kind: 'rest',
  name: 'OpenAI',
  docs: 'https://platform.openai.com/docs/api-reference',
  base_url: 'https://api.openai.com/v1',
  auth: { type: 'bearer' },
  client_headers: ['openai-beta'],
  error_body: { error: { message: '{detail}', type: 'invalid_request_error', param: null, code: '{code}' } },
  // With these a call is billed to another organisation or project of the key.
  forbidden_headers: ['openai-organization', 'openai-project'],
  scopes: {
    'openai:models.read': ['GET /models', 'GET /models/*'],
    // A fine-tuned one is gone then.
    'openai:models.delete': ['DELETE /models/*'],
    // Costs money by length. A response may use tools of OpenAI (search, code, MCP servers) that the body names.
    'openai:inference.run': [
      'POST /chat/completions',
      'POST /completions',
      'POST /responses',
      'POST /responses/compact',
      'POST /responses/input_tokens',
      'POST /embeddings',
      'POST /moderations',
      'POST /images/generations',
      'POST /audio/speech',
    ],
    'openai:responses.read': [
      'GET /responses/*',
      'GET /responses/*/input_items',
      'GET /chat/completions',
      'GET /chat/completions/*',
      'GET /chat/completions/*/messages',
      'GET /conversations/*',
      'GET /conversations/*/items',
      'GET /conversations/*/items/*',
    ],
    'openai:responses.write': [
      'POST /responses/*/cancel',
      'POST /chat/completions/*',
      'POST /conversations',
      'POST /conversations/*',
      'POST /conversations/*/items',
    ],
    'openai:responses.delete': [
      'DELETE /responses/*',
      'DELETE /chat/completions/*',
      'DELETE /conversations/*',
      'DELETE /conversations/*/items/*',
    ],
    'openai:files.read': [
      'GET /files',
      'GET /files/*',
      'GET /files/*/content',
      'GET /containers',
      'GET /containers/*',
      'GET /containers/*/files',
      'GET /containers/*/files/*',
      'GET /containers/*/files/*/content',
    ],
    'openai:files.write': [
      'POST /uploads',
      'POST /uploads/*/complete',
      'POST /uploads/*/cancel',
      'POST /containers',
      'POST /containers/*/files',
    ],
    'openai:files.delete': ['DELETE /files/*', 'DELETE /containers/*', 'DELETE /containers/*/files/*'],
    'openai:vectorstores.read': [
      'GET /vector_stores',
      'GET /vector_stores/*',
      'GET /vector_stores/*/files',
      'GET /vector_stores/*/files/*',
      'GET /vector_stores/*/files/*/content',
      'GET /vector_stores/*/file_batches/*',
      'GET /vector_stores/*/file_batches/*/files',
      'POST /vector_stores/*/search',
    ],
    'openai:vectorstores.write': [
      'POST /vector_stores',
      'POST /vector_stores/*',
      'POST /vector_stores/*/files',
      'POST /vector_stores/*/files/*',
      'POST /vector_stores/*/file_batches',
      'POST /vector_stores/*/file_batches/*/cancel',
    ],
    'openai:vectorstores.delete': ['DELETE /vector_stores/*', 'DELETE /vector_stores/*/files/*'],
    'openai:batches.read': ['GET /batches', 'GET /batches/*'],
    'openai:batches.write': ['POST /batches', 'POST /batches/*/cancel'],
    'openai:finetuning.read': [
      'GET /fine_tuning/jobs',
      'GET /fine_tuning/jobs/*',
      'GET /fine_tuning/jobs/*/events',
      'GET /fine_tuning/jobs/*/checkpoints',
    ],
    'openai:finetuning.write': [
      'POST /fine_tuning/jobs',
      'POST /fine_tuning/jobs/*/cancel',
      'POST /fine_tuning/jobs/*/pause',
      'POST /fine_tuning/jobs/*/resume',
    ],
    'openai:evals.read': [
      'GET /evals',
      'GET /evals/*',
      'GET /evals/*/runs',
      'GET /evals/*/runs/*',
      'GET /evals/*/runs/*/output_items',
      'GET /evals/*/runs/*/output_items/*',
    ],
    'openai:evals.write': ['POST /evals', 'POST /evals/*', 'POST /evals/*/runs', 'POST /evals/*/runs/*'],
    'openai:evals.delete': ['DELETE /evals/*', 'DELETE /evals/*/runs/*'],
    'openai:videos.read': ['GET /videos', 'GET /videos/*', 'GET /videos/*/content'],
    'openai:videos.write': ['POST /videos', 'POST /videos/*/remix'],
    'openai:videos.delete': ['DELETE /videos/*'],
  },
  presets: {
    read: [
      'openai:models.read',
      'openai:responses.read',
      'openai:files.read',
      'openai:vectorstores.read',
      'openai:batches.read',
      'openai:finetuning.read',
    ],
    inference: ['openai:models.read', 'openai:inference.run'],
    everything: ['*'],
  },
} satisfies ManifestInput;
