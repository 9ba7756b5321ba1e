/** Complete HTTP/1.1 requests as bytes, prepared before anything is measured. */

const SCOPE = 'bench:items.read';
const ENDPOINT = '/items/1347';

/** The platform of the bench, in the shape of an entry of `platforms` in governance.yaml, without its `base_url`. */
export const BENCH_PLATFORM = {
  kind: 'rest',
  auth: { type: 'bearer' },
  scopes: {
    [SCOPE]: ['GET /items', 'GET /items/*'],
    'bench:items.write': ['POST /items', 'PATCH /items/*'],
    'bench:files.read': ['GET /files/*', 'GET /events/*'],
    'bench:files.write': ['PUT /files/*', 'POST /events/*'],
  },
};
export const BENCH_PLATFORM_ID = 'bench';

export const PEOPLE_PLATFORM_ID = 'people';
export const PEOPLE_SCOPE = 'people:items.read';
/** Returns the platform of the soak at this URL, with one token per person. */
export const peoplePlatform = (url: string): object => ({
  kind: 'rest',
  base_url: url,
  auth: { type: 'oauth2', issuer: url, client_id: 'bench', scopes: ['items'] },
  per_person: { enabled: true, asserted: ['bench'], asserted_consent: 'link' },
  scopes: { [PEOPLE_SCOPE]: ['GET /items'] },
});

/** The governed read of every comparison. */
export const READ = { platform: BENCH_PLATFORM_ID, endpoint: ENDPOINT, method: 'GET', scope: SCOPE } as const;

/** The same read, sent to the upstream itself or to a plain proxy in front of it. */
export function plainRead(): Buffer {
  return Buffer.from(`GET ${ENDPOINT} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\n\r\n`);
}

/** A governed read, `POST /v1/actions`. */
export function governedRead(agentToken: string): Buffer {
  const body = JSON.stringify(READ);
  const head = `POST /v1/actions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${agentToken}\r\n`;
  return Buffer.from(`${head}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
}

/** The same read as a client of the platform sends it, below `/proxy`. */
export function rawRead(agentToken: string): Buffer {
  const head = `GET /proxy/${BENCH_PLATFORM_ID}${ENDPOINT} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\n`;
  return Buffer.from(`${head}authorization: Bearer ${agentToken}\r\n\r\n`);
}

/** Returns the body of a call that the policy holds for a decision, different for each number. */
export function heldWrite(number: number): object {
  const data = { title: `Order ${number}`, amount: 12.5, note: 'Please look at this before it goes out.' };
  return { platform: BENCH_PLATFORM_ID, endpoint: '/items', method: 'POST', scope: 'bench:items.write', data };
}

/** A decision about one scope, `POST /v1/authzen/access`, requested by the agent itself. */
export function authzenQuestion(agentToken: string, agentId: string): Buffer {
  const subject = { type: 'agent', id: agentId };
  const asked = { subject, action: { name: SCOPE }, resource: { type: 'platform', id: BENCH_PLATFORM_ID } };
  return post('/v1/authzen/access', asked, `authorization: Bearer ${agentToken}\r\n`);
}

/** The same decision, requested without authentication: `POST /v1/trqp/authorization`. */
export function trqpQuestion(agentId: string, port: number): Buffer {
  const names = { entity_id: agentId, authority_id: `did:web:localhost%3A${port}` };
  return post('/v1/trqp/authorization', { ...names, action: SCOPE, resource: BENCH_PLATFORM_ID }, '');
}

function post(path: string, value: object, headers: string): Buffer {
  const body = JSON.stringify(value);
  const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${headers}`;
  return Buffer.from(`${head}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
}

/** The agent's permissions, which need decisions only: `GET /v1/agent/permissions`. */
export function permissionsQuestion(agentToken: string): Buffer {
  const head = 'GET /v1/agent/permissions HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\n';
  return Buffer.from(`${head}authorization: Bearer ${agentToken}\r\n\r\n`);
}
