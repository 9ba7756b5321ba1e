import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { governanceOf, parseGovernance } from '../../broker/config-file/parse.ts';
import { formatProblem } from '../../broker/config-file/problems.ts';
import { sized } from '../world/runner/thorough.ts';
import { CRM, newPublicKey, problemsOf, quote, read, warningsOf } from './governance-world.ts';

/** The shape that the documentation shows. */
const WHOLE = `organisation: acme
publish_identity_documents: true
owners:
  - { email: ann@acme.example, role: admin }
  - { email: Bob@acme.example, role: approver }
platforms:
  codehost: { use: github }
  crm:
    kind: rest
    base_url: https://crm.example/api
    auth: { type: bearer }
    scopes:
      crm:contacts.read:  ["GET /contacts", "GET /contacts/*"]
      crm:contacts.write: ["POST /contacts", "PATCH /contacts/*"]
    recipients: { "POST /contacts": ["/to", "/cc/*"] }
  issues:
    kind: graphql
    base_url: https://api.issues.example/graphql
    auth: { type: header, name: Authorization }
    scopes: { "issues:read": ["query *"], "issues:create": ["mutation issueCreate"] }
  docs:
    kind: rest
    base_url: https://docs.example/api
    auth: { type: oauth2, issuer: "https://id.example", client_id: { env: DOCS_ID }, client_secret: { env: DOCS_SECRET },
            scopes: [openid, api] }
    per_person: { enabled: true, asserted: [slack] }
    scopes: { "docs:read": ["GET /**"] }
  tools:
    kind: mcp
    base_url: https://mcp.example/mcp
    auth: { type: bearer }
    attestation: both
    scopes: { "tools:search": ["tool search_*"] }
caller_issuers:
  - { issuer: "https://id.example", audience: "agents" }
connections:
  crm-main: { platform: crm, secret: { env: CRM_TOKEN } }
  codehost-main: { platform: codehost, secret: { file: secrets/github } }
policies:
  careful:
    rules:
      - { effect: allow, platforms: [crm], scopes: ["crm:*.read"] }
      - { effect: require_approval, platforms: [crm], methods: [POST, PATCH] }
      - { effect: deny, endpoints: ["/admin/**"] }
      - { effect: deny, when: 'has(request.body.amount) && request.body.amount > 1000' }
guardrails:
  - { name: no-deletes, effect: require_approval, methods: [DELETE] }
agents:
  triage:
    owner: bob@acme.example
    policy: careful
    public_key: { file: keys/triage.pub.pem }
    grants:
      crm: { scopes: ["crm:contacts.read"], expires: 30d, require_approval: false,
             recipients: ["@acme.example"], connection: crm-main }
      codehost: { scopes: ["codehost:contents.read"], repos: ["acme/*"], allow_repo_creation: false,
             refs: ["agent/**", "refs/tags/v*"], ref_changes: [create, update] }
`;

describe('a governance file', () => {
  it('is parsed completely', () => {
    expect(problemsOf(WHOLE)).toEqual([]);
    expect(warningsOf(WHOLE)).toEqual([]);
    const { document, manifests } = read(WHOLE);
    expect(document.owners?.[1]?.email).toBe('bob@acme.example');
    expect([...manifests.keys()]).toEqual(['codehost', 'crm', 'issues', 'docs', 'tools']);
    expect(manifests.get('codehost')?.base_url).toBe('https://api.github.com');
    expect(document.agents?.triage?.grants?.codehost).toMatchObject({ repos: ['acme/*'] });
  });

  it.each([
    [
      'an unknown section',
      'platfroms: {}',
      '1:1: platfroms: "platfroms" is not known here. Did you mean "platforms"? Allowed: organisation, publish_identity_documents, auto_suspend, retention, passkey_deciders, owners, platforms, caller_issuers, connections, channels, audit_sinks, policies, guardrails, agents.',
    ],
    [
      'a member of another type of credential',
      'platforms:\n  a: { kind: rest, base_url: "https://x.example", auth: { type: bearer, name: X }, scopes: {} }',
      '2:73: platforms.a.auth.name: "name" is not known here. Allowed: type.',
    ],
    [
      'a member that another one excludes',
      'platforms:\n  b: { use: github, kind: rest }',
      '2:21: platforms.b.kind: "kind" does not go with the other names here; leave it out.',
    ],
    [
      'an empty section',
      'agents:',
      '1:1: agents: is empty. Omit the name to leave it unchanged, or write {} for none. The agents, by name.',
    ],
    [
      'an unknown role',
      'owners:\n  - { email: a@b.example, role: boss }',
      '2:33: owners[0].role: "boss" is not allowed; write "admin", "approver" or "viewer". Admin changes things, approver decides on held calls, viewer reads.',
    ],
    [
      'true where false or a mapping belongs',
      'auto_suspend: true',
      '1:15: auto_suspend: true (put it in quotes if it is text) is not allowed; write "false", or a mapping. After how many refused calls an agent is suspended until an owner resumes it; false: never.',
    ],
    [
      'a text where a boolean or a fixed text belongs',
      'platforms:\n  a: { use: github, encoded_slash: yes }',
      '2:36: platforms.a.encoded_slash: "yes" is not allowed; write "as_slash", or true or false. Whether "%2F" is allowed in a path segment; off by default, because servers differ in reading it. as_slash: it is judged and sent as "/".',
    ],
    [
      'an unknown kind of channel',
      'channels:\n  ops: { kind: pigeon, url: "https://a.example" }',
      '2:16: channels.ops.kind: "pigeon" is not allowed; write "webhook", "ntfy", "email", "slack", "teams" or "telegram".',
    ],
    [
      'an owner twice',
      'owners:\n  - { email: a@b.example, role: admin }\n  - { email: A@b.example, role: viewer }',
      '3:14: owners[1].email: "a@b.example" is listed twice.',
    ],
    [
      'a wrong kind of value',
      'publish_identity_documents: "yes"',
      "1:29: publish_identity_documents: true or false belongs here, not text. Whether anyone may read the DID documents of the organisation's agents.",
    ],
    [
      'a number for a name',
      'organisation: 5',
      '1:15: organisation: text belongs here, not the number 5 (put it in quotes if it is text). Name of the organisation.',
    ],
    [
      'an unknown built-in platform',
      'platforms:\n  x: { use: gihub }',
      '2:13: platforms.x.use: "gihub" is not allowed; write "github", "slack", "gmail", "google-calendar", "notion", "linear", "jira", "stripe", "openai", "anthropic", "npm", "kubernetes" and 1 more. Did you mean "github"? The built-in platform to start from; every other field overrides one of its fields. A platform of your own has `kind` in its place.',
    ],
    [
      'a platform that is neither a built-in one nor of a kind',
      CRM.replace('    kind: rest\n', ''),
      '2:3: platforms.crm: "use" or "kind" is missing. A platform: a built-in one with changes, or a whole one.',
    ],
    [
      'a bad platform id',
      'platforms:\n  Git Hub: { use: github }',
      '2:3: platforms["Git Hub"]: this name cannot be used: write lower-case letters, digits, "_" or "-", such as "crm".',
    ],
    [
      'a base URL of the wrong kind',
      CRM.replace('https://crm', 'ftp://crm'),
      '4:15: platforms.crm.base_url: must begin with "https://"; "http://" is accepted for this machine only (localhost, 127.0.0.1, [::1]).',
    ],
    [
      'a rule that is no operation',
      CRM.replace('"POST /contacts"', '"SEND /contacts"'),
      '8:28: platforms.crm.scopes["crm:contacts.write"][0]: "SEND /contacts": SEND is not a method; use one of GET, POST, PUT, PATCH, DELETE.',
    ],
    [
      'a secret that is written out',
      `${CRM}connections:\n  m: { platform: crm, secret: hunter2 }`,
      '11:31: connections.m.secret: write { env: NAME } or { file: PATH }; a secret itself is never written here.',
    ],
    [
      'a connection to an unknown platform',
      `${CRM}connections:\n  m: { platform: crn, secret: { env: X } }`,
      '11:18: connections.m.platform: there is no platform "crn". Did you mean "crm"? There are: "crm".',
    ],
    [
      'two default connections',
      'connections:\n  a: { platform: crm, secret: { env: X }, default: true }\n  b: { platform: crm, secret: { env: X }, default: true }',
      '3:52: connections.b.default: "a" is the default connection of "crm" already; a platform has one.',
    ],
    [
      'an unknown effect',
      'policies:\n  p: { rules: [{ effect: alow }] }',
      '2:26: policies.p.rules[0].effect: "alow" is not allowed; write "allow", "require_approval", "deny" or "mask". Did you mean "allow"? What happens to calls that match. The most severe matching rule wins; what none matches is denied. mask lets nothing pass: it is about what the calls are answered.',
    ],
    [
      'an empty list in a rule',
      'policies:\n  p: { rules: [{ effect: deny, platforms: [] }] }',
      '2:32: policies.p.rules[0].platforms: is empty, so the rule would match nothing.',
    ],
    [
      'a bad pattern',
      'policies:\n  p: { rules: [{ effect: deny, endpoints: ["admin/**"] }] }',
      '2:44: policies.p.rules[0].endpoints[0]: "admin/**" is not an endpoint pattern: it must begin with `/`.',
    ],
    [
      'two rules of one name',
      'policies:\n  p: { rules: [{ name: a, effect: deny }, { name: a, effect: allow }] }',
      '2:51: policies.p.rules[1].name: there are two rules "a" in this policy.',
    ],
    [
      'a guardrail that allows',
      'guardrails:\n  - { name: g, effect: allow }',
      '2:24: guardrails[0].effect: "allow" is not allowed; write "require_approval", "deny", "suspend" or "mask". A guardrail only tightens: require_approval, deny, suspend (deny, and suspend the agent), or mask (what the calls are answered).',
    ],
    [
      'a guardrail without a name',
      'guardrails:\n  - { effect: deny }',
      '2:5: guardrails[0].name: is missing. What the guardrail is called in audit rows.',
    ],
    [
      'an unknown policy',
      'policies: { p: { rules: [] } }\nagents:\n  t: { policy: q }',
      '3:16: agents.t.policy: there is no policy "q". There are: "default" and "p".',
    ],
    [
      'a key that is none',
      'agents:\n  t: { public_key: { file: a, pem: b } }',
      '2:8: agents.t.public_key: write { file: PATH }, or { pem: TEXT }.',
    ],
    [
      'an unknown platform in a grant',
      `${CRM}agents:\n  t: { grants: { crn: { scopes: [a] } } }`,
      '11:18: agents.t.grants.crn: there is no platform "crn". Did you mean "crm"? There are: "crm".',
    ],
    [
      'an unknown scope',
      `${CRM}agents:\n  t: { grants: { crm: { scopes: ["crm:contact.read"] } } }`,
      '11:34: agents.t.grants.crm.scopes[0]: the platform "crm" has no scope "crm:contact.read". Did you mean "crm:contacts.read"? It has: "crm:contacts.read" and "crm:contacts.write".',
    ],
    [
      'a pattern for a scope',
      `${CRM}agents:\n  t: { grants: { crm: { scopes: ["crm:*"] } } }`,
      '11:34: agents.t.grants.crm.scopes[0]: the platform "crm" has no scope "crm:*". A grant lists its scopes one by one; patterns are for policies. It has: "crm:contacts.read" and "crm:contacts.write".',
    ],
    [
      'an expiry in weeks',
      `${CRM}agents:\n  t: { grants: { crm: { scopes: ["crm:contacts.read"], expires: 3w } } }`,
      '11:65: agents.t.grants.crm.expires: write a time span such as "30d", "12h" or "45m" (at most 3650d), or a moment such as "2027-01-31T18:00:00Z".',
    ],
    [
      'a recipient that is none',
      `${CRM}agents:\n  t: { grants: { crm: { scopes: ["crm:contacts.read"], recipients: [bob] } } }`,
      '11:69: agents.t.grants.crm.recipients[0]: is no e-mail address, and "crm" knows nobody by an id; write "ann@acme.example", or "@acme.example" for everybody there.',
    ],
    [
      'a recipient that nothing can be',
      `${CRM}agents:\n  t: { grants: { crm: { scopes: ["crm:contacts.read"], recipients: ["*"] } } }`,
      '11:69: agents.t.grants.crm.recipients[0]: is no recipient; write "ann@acme.example", "@acme.example" for everybody there, or the id by which the platform knows somebody.',
    ],
    [
      'a pattern for recipients',
      `${CRM}agents:\n  t: { grants: { crm: { scopes: ["crm:contacts.read"], recipients: ["*@acme.example"] } } }`,
      '11:69: agents.t.grants.crm.recipients[0]: is no recipient; write "ann@acme.example", "@acme.example" for everybody there, or the id by which the platform knows somebody.',
    ],
    [
      'an address where the platform has ids',
      'platforms:\n  j: { use: jira, base_url: "https://acme.atlassian.net" }\nagents:\n  t: { grants: { j: { scopes: ["jira:issues.notify"], recipients: ["5b10ac8d82e05b22cc7d4ef5", "ann@acme.example"] } } }',
      '4:96: agents.t.grants.j.recipients[1]: is an e-mail address, but "j" knows everybody by an id; write that.',
    ],
    [
      'a repository that is none',
      `${CRM}agents:\n  t: { grants: { crm: { scopes: ["crm:contacts.read"], repos: ["*"] } } }`,
      '11:64: agents.t.grants.crm.repos[0]: is no repository; write "owner/name" (without ".git") or "owner/*".',
    ],
    [
      'more repositories than a grant may list',
      `${CRM}agents:\n  t: { grants: { crm: { scopes: ["crm:contacts.read"], repos: [${'a/*,'.repeat(65)}] } } }`,
      '11:56: agents.t.grants.crm.repos: has more than 64 entries; write "owner/*" for all of an owner.',
    ],
    [
      'fewer days than there may be',
      'retention: { reads_days: 30 }',
      '1:26: retention.reads_days: must be between 31 and 36500.',
    ],
    [
      'more days than there may be',
      'retention: { reads_days: 40000 }',
      '1:26: retention.reads_days: must be between 31 and 36500.',
    ],
    [
      'more refusals than there may be',
      'auto_suspend: { refusals: 20000, within_seconds: 60 }',
      '1:27: auto_suspend.refusals: must be between 3 and 10000.',
    ],
    [
      'a part of an automatic suspension',
      'auto_suspend: { refusals: 100 }',
      '1:1: auto_suspend.within_seconds: is missing. Within how much time; it begins with the first of them.',
    ],
    [
      'an automatic suspension after a text of refusals',
      'auto_suspend: { refusals: "100", within_seconds: 60 }',
      '1:27: auto_suspend.refusals: a number belongs here, not text. How many refused calls of an agent and its children are too many.',
    ],
    [
      'days as text',
      'retention: { reads_days: "90" }',
      '1:26: retention.reads_days: a number belongs here, not text. How long allowed calls by GET and HEAD are kept; null: for ever.',
    ],
    [
      'a connection that waits longer than it may',
      `${CRM}connections: { c: { platform: crm, secret: { env: CRM_TOKEN }, idle_seconds: 601 } }`,
      '10:78: connections.c.idle_seconds: must be between 1 and 600.',
    ],
    [
      'a connection that waits less than it may',
      `${CRM}connections: { c: { platform: crm, secret: { env: CRM_TOKEN }, wait_seconds: -1 } }`,
      '10:78: connections.c.wait_seconds: must be between 0 and 120.',
    ],
    [
      'a ref outside of branches and tags',
      `${CRM}agents:\n  t: { grants: { crm: { scopes: ["crm:contacts.read"], refs: ["agent/*", "refs/notes/*"] } } }`,
      '11:74: agents.t.grants.crm.refs[1]: is outside of refs/heads/ and refs/tags/; only branches and tags can be allowed.',
    ],
    [
      'a change of refs that there is not',
      `${CRM}agents:\n  t: { grants: { crm: { scopes: ["crm:contacts.read"], ref_changes: [force] } } }`,
      '11:70: agents.t.grants.crm.ref_changes[0]: "force" is not allowed; write "create", "update" or "delete".',
    ],
    [
      'two grants with one connection',
      `${CRM}agents:\n  t:\n    grants:\n      crm:\n        - { scopes: ["crm:contacts.read"] }\n        - { scopes: ["crm:contacts.write"] }`,
      '15:11: agents.t.grants.crm[1]: there are two grants without a connection on this platform; name a connection in one, or write one grant.',
    ],
    [
      'a connection of another platform',
      `${CRM}  oth: { use: slack }\nconnections:\n  o: { platform: oth, secret: { env: X } }\nagents:\n  t: { grants: { crm: { scopes: ["crm:contacts.read"], connection: o } } }`,
      '14:68: agents.t.grants.crm.connection: the connection "o" is one to "oth"; those to "crm" are: none.',
    ],
    ['an empty file', '# nothing\n', '1:1: is empty; nothing would be applied.'],
    ['a file that is a list', '- a', '1:1: a mapping belongs here, not a list.'],
  ])('is refused with %s, at its line and with what is allowed', (_, text, message) => {
    expect(problemsOf(text)).toEqual([`governance.yaml:${message}`]);
  });

  it('is refused with a condition that is not CEL, with the compiler’s message', () => {
    const [problem, ...others] = problemsOf(
      'policies:\n  p: { rules: [{ effect: deny, when: "request.body.amount >" }] }',
    );
    expect(others).toEqual([]);
    expect(problem).toMatch(/^governance\.yaml:2:38: policies\.p\.rules\[0\]\.when: at 1:21: /);
    expect(problemsOf('policies:\n  p: { rules: [{ effect: deny, when: "request.method == \'GET\'" }] }')).toEqual([]);
  });

  it('is refused with a private key in place of a public one, which is not repeated', () => {
    const text = `agents: { t: { public_key: { pem: "-----BEGIN PRIVATE KEY-----\\nCANARY\\n-----END PRIVATE KEY-----\\n" } } }`;
    const [problem] = problemsOf(text);
    expect(problem).toContain('This is a private key');
    expect(problem).toContain('If this file was sent or stored anywhere, make a new key pair first.');
    expect(problem).not.toContain('CANARY');
    expect(problemsOf(`agents: { t: { public_key: { pem: ${quote(newPublicKey())} } } }`)).toEqual([]);
  });

  it('reports all problems together, in the order of the lines', () => {
    const lines = problemsOf('organisation: 5\nowners: 1\nagents:\n  t: { policy: 1, grants: { x: 5 } }').map(
      (line) => line.split(': ')[0],
    );
    expect(lines).toEqual([
      'governance.yaml:1:15',
      'governance.yaml:2:9',
      'governance.yaml:4:16',
      'governance.yaml:4:32',
    ]);
  });

  it('may contain names that only the store can resolve', () => {
    expect(
      problemsOf('agents: { t: { owner: x@y.example, policy: p, grants: { crm: { scopes: [s], connection: c } } } }'),
    ).toEqual([]);
  });

  it.each([
    ['request.headers["x-reason"] == "a"', '"x-reason" in request.headers'],
    ['request.query["a-b"] == "1"', '"a-b" in request.query'],
    ['request.body["a b"] == 1', '"a b" in request.body'],
    ['request.body["in"] == 1', '"in" in request.body'],
    ['request.body.amount == 1', 'has(request.body.amount)'],
  ])('gets a warning with a working presence test: %s', (when, test) => {
    const file = (condition: string) =>
      `${CRM}policies:\n  p: { rules: [{ effect: deny, when: ${JSON.stringify(condition)} }] }`;
    const [warning] = warningsOf(file(when));
    expect(warning).toContain(`Write ${test} && … to say what you mean.`);
    expect(warningsOf(file(`${test} && (${when})`))).toEqual([]);
  });

  it('explains what has() accepts', () => {
    const file = `${CRM}policies:\n  p: { rules: [{ effect: deny, when: 'has(request.headers["x-reason"])' }] }`;
    expect(problemsOf(file)).toEqual([expect.stringContaining('write "x-reason" in request.headers')]);
  });

  it('is refused when a rule has the name of an unnamed rule', () => {
    const file = (name: string) =>
      `${CRM}policies:\n  p: { rules: [{ name: ${name}, effect: allow }, { effect: deny }] }`;
    expect(problemsOf(file('rule 2'))).toEqual([
      expect.stringContaining('"rule 2" is what a rule without a name is called by its place; choose another name.'),
    ]);
    expect(problemsOf(file('rule two'))).toEqual([]);
  });

  it.each([
    [
      'request.method == "delete"',
      'compares request.method with "delete", which is the method of no call. They are GET, POST, PUT, PATCH, DELETE.',
    ],
    [
      '!(request.method in ["GET", "HEAD"])',
      'compares request.method with "HEAD", which is the method of no call. They are GET, POST, PUT, PATCH, DELETE.',
    ],
    [
      'platform == "crm" && now > timestamp("2027-01-31")',
      'timestamp("2027-01-31") always fails, which counts against the agent: the rule applies. Instead write a moment such as timestamp("2027-01-31T18:00:00Z").',
    ],
    [
      'now - timestamp("2026-01-31T00:00:00Z") > duration("90d")',
      'duration("90d") always fails, which counts against the agent: the rule applies. Instead write hours, minutes or seconds, such as duration("36h") or duration("90m").',
    ],
    [
      'agent.labels.exists(l, int("1e3") == 2)',
      'int("1e3") always fails, which counts against the agent: the rule applies. Instead write a whole number.',
    ],
  ])('gets a warning for values that no call has, and for literals that always fail: %s', (when, message) => {
    const rules = (rule: string) => `${CRM}policies:\n  p: { rules: [${rule}] }`;
    const warnings = warningsOf(rules(`{ effect: deny, when: '${when}' }`));
    expect(warnings).toEqual([`governance.yaml:11:38: policies.p.rules[0].when: ${message}`]);
  });

  it('gets no warning for literals that a call may have, or that can be converted', () => {
    const when =
      'request.method != "GET" && request.method in ["POST", "PATCH"] && now - timestamp("2026-01-31T00:00:00+01:00") > duration("1h30m") && int("5") > 4 && double("1e3") > 1.0 && bool("true")';
    expect(warningsOf(`${CRM}policies:\n  p: { rules: [{ effect: deny, when: '${when}' }] }`)).toEqual([]);
  });

  it('gets a warning for a member that is read without has(), and for rules that can never match', () => {
    const rules = (rule: string) => `${CRM}policies:\n  p: { rules: [${rule}] }`;
    expect(warningsOf(rules(`{ effect: deny, when: 'has(request.body.a) && request.body.a > 1' }`))).toEqual([]);
    expect(warningsOf(rules(`{ effect: deny, when: 'request.body.a > 1' }`))).toEqual([
      'governance.yaml:11:38: policies.p.rules[0].when: reads "request.body.a" without has(). Where it is missing the condition fails, which counts against the agent: the rule applies. Write has(request.body.a) && … to say what you mean.',
    ]);
    expect(warningsOf(rules('{ effect: deny, platforms: [crn], scopes: ["crm:contact.read", "crm:*.read"] }'))).toEqual(
      [
        'governance.yaml:11:44: policies.p.rules[0].platforms[0]: there is no platform "crn", so this matches nothing. Did you mean "crm"?',
        'governance.yaml:11:59: policies.p.rules[0].scopes[0]: there is no scope "crm:contact.read", so this matches nothing. Did you mean "crm:contacts.read"?',
      ],
    );
  });

  it('gets a warning for unknown scopes, beside an MCP server too, and for patterns that match nothing', () => {
    const server =
      '  t: { kind: mcp, base_url: "https://m.example/mcp", auth: { type: bearer }, scopes: { "t:a": ["tool a"] } }\n';
    const warned = (scopes: string, more = '') =>
      warningsOf(`${CRM}${more}guardrails: [{ name: g, effect: deny, scopes: [${scopes}] }]`).map((warning) =>
        warning.replace(/^.*?: .*?: /, ''),
      );
    for (const more of ['', server]) {
      expect(warned('"crm:contact.read", "crm:contatcs.*"', more)).toEqual([
        'there is no scope "crm:contact.read", so this matches nothing. Did you mean "crm:contacts.read"?',
        expect.stringContaining('there is no scope "crm:contatcs.*", so this matches nothing.'),
      ]);
      // A pattern for any platform may be written for platforms that are added later.
      expect(warned('"crm:contacts.*", "*.sent", "*:read", "*"', more)).toEqual([]);
    }
    // The names of a server's tools are not known.
    expect(warned('"t:later", "t:later.*", "other:x", "other:*", "*.wrote"', server)).toEqual([]);
    expect(warned('"crn:*", "crm.*", "crm*", "cr:contacts*", "*.wrote"')).toEqual([
      'there is no scope "crn:*", so this matches nothing. Did you mean "crm:*"?',
      'there is no scope "crm.*", so this matches nothing. Did you mean "crm:*"?',
      'there is no scope "cr:contacts*", so this matches nothing.',
      'there is no scope "*.wrote", so this matches nothing. Did you mean "*.write"?',
    ]);
  });

  it('gets a warning for patterns that match no platform', () => {
    const warned = (text: string) => warningsOf(text).map((warning) => warning.replace(/^.*?: .*?: /, ''));
    const rules = (platforms: string) => `guardrails: [{ name: g, effect: deny, platforms: [${platforms}] }]`;
    expect(warned(`${CRM}${rules('"crn*", "cr*", "*m", "*"')}`)).toEqual([
      'there is no platform "crn*", so this matches nothing. Did you mean "crm"?',
    ]);
    expect(warned(`platforms: {}\n${rules('"*"')}`)).toEqual([]);
  });

  it('gets a warning for variable segments in another notation, also in what a rule looks back at', () => {
    const text = `${CRM}guardrails:
  - { name: g, effect: deny, endpoints: ["/issues/*", "/issues/:id"] }
  - { name: h, effect: deny, after: { within: 8h, endpoints: ["/issues/:id/notes", "/messages:batch"] } }`;
    expect(warningsOf(text)).toEqual([
      'governance.yaml:11:55: guardrails[0].endpoints[1]: ":id" matches only this text. Write `*` for a variable segment, not `:name`.',
      'governance.yaml:12:63: guardrails[1].after.endpoints[0]: ":id" matches only this text. Write `*` for a variable segment, not `:name`.',
    ]);
  });

  it('gets a warning for masked members that are written as JSONPath', () => {
    const members = '"$.author", "labels[0]", "contacts[*].email", email, "a.b", "/contacts/*/email", "cost$"';
    const text = `${CRM}guardrails: [{ name: g, effect: mask, mask: { members: [${members}] } }]`;
    expect(warningsOf(text).map((warning) => warning.replace(/^.*?members/, '').replace(/ here, and.*/, ''))).toEqual([
      '[0]: "$.author" is a name',
      '[1]: "labels[0]" is a name',
      '[2]: "contacts[*].email" is a name',
    ]);
  });

  it('is refused with a mask that would mask nothing: its path ends with a slash', () => {
    const text = `${CRM}    masks: { "GET /contacts": ["/data/token/", "a/b", token, "/data/*/key"] }
guardrails: [{ name: g, effect: mask, mask: { members: ["/contacts/", "/contacts/*/email/", "/", "/contacts/**"] } }]`;
    expect(problemsOf(text.replace(/ {4}masks.*\n/, '')).map((problem) => problem.replace(/^.*?members/, ''))).toEqual([
      '[0]: a path does not end with "/": write "/contacts".',
      '[1]: a path does not end with "/": write "/contacts/*/email".',
      '[2]: write a name such as "email", or a path such as "/contacts/*/email".',
    ]);
    expect(problemsOf(text).filter((problem) => problem.includes('platforms.crm.masks'))).toEqual([
      'governance.yaml:10:32: platforms.crm.masks["GET /contacts"][0]: a path does not end with "/": write "/data/token".',
      'governance.yaml:10:48: platforms.crm.masks["GET /contacts"][1]: a path begins with "/": write "/a/b", or "/**/a/b" for any depth.',
    ]);
  });

  it('gets a warning for what a platform states about operations that no scope of it has', () => {
    const text = `platforms:
  zz:
    kind: rest
    base_url: https://zz.example
    auth: { type: bearer }
    scopes: { "zz:write": ["POST /messages", "GET /messages/*", "mutation send*"] }
    graphql: { path: /graphql }
    recipients: { "mutation sendMail": [/to], "mutation mail": [/to] }
  zy:
    kind: rest
    base_url: https://zy.example
    auth: { type: bearer }
    scopes: { "zy:write": ["POST /messages", "GET /messages/*"] }
    recipients: { "POST /messages": [/to], "POST /mesages": [/to], "POST /**": [/to] }
    content_scopes: { "PUT /messages": [{ pointer: /x, scope: null }], "PATCH /x/**": [{ scope: null }] }
    refs: { "POST /mesages": [] }
    masks: { "GET /messages/*/x": [token] }
  s3: { use: s3, base_url: https://s3.example, content_scopes: { "GET /admin/**": [] } }`;
    expect(warningsOf(text)).toEqual([
      'governance.yaml:8:47: platforms.zz.recipients["mutation mail"]: no scope of the platform has such an operation, so this applies to no call.',
      'governance.yaml:14:44: platforms.zy.recipients["POST /mesages"]: no scope of the platform has such an operation, so this applies to no call. Did you mean "POST /messages"?',
      'governance.yaml:15:23: platforms.zy.content_scopes["PUT /messages"]: no scope of the platform has such an operation, so this applies to no call. Did you mean "POST /messages"?',
      'governance.yaml:17:14: platforms.zy.masks["GET /messages/*/x"]: no scope of the platform has such an operation, so this applies to no call. Did you mean "GET /messages/*"?',
    ]);
  });

  it('gets a warning for operations of a scope with a segment in the notation of other programs', () => {
    const text = CRM.replace('"GET /contacts/*"', '"GET /contacts/:id", "GET /contacts/*:archive"');
    expect(warningsOf(text).map((warning) => warning.replace(/^.*?crm\./, ''))).toEqual([
      'scopes["crm:contacts.read"][1]: ":id" matches only this text. Write `*` for a variable segment, not `:name`.',
    ]);
  });

  it('gets a warning for headers of a platform that look like keys', () => {
    const text = CRM.replace(
      / {4}recipients/,
      `    headers: { X-Api-Version: "2", X-Second-Key: sk_live_abcdefghij0123456789 }
    default_headers: { X-Trace: "eyJhbGciOiJSUzI1NiJ9", X-Token: npm_abcdefghijklmnopqrstuvwxyz0123456789 }
$&`,
    );
    const found = warningsOf(text);
    expect(found.map((warning) => warning.replace(/^.*?crm\.(.*?):.*$/, '$1'))).toEqual([
      'headers.X-Second-Key',
      'default_headers.X-Token',
    ]);
    expect(found.join()).not.toContain('abcdefghij');
  });

  it('gets a warning for JSON pointers of a platform that end with a slash, which are of no member', () => {
    const text = CRM.replace('["/to"]', '["/to/", { pointer: /cc/*/, optional: true }, "/bcc/*"]').replace(
      / {4}recipients/,
      '    content_scopes: { "POST /contacts": [{ pointer: /admin/, scope: null }] }\n    refs: { "POST /contacts": [{ in: body, at: /b/, prefix: refs/heads/, action: create }] }\n$&',
    );
    expect(warningsOf(text).map((warning) => warning.replace(/^.*?crm\./, ''))).toEqual([
      'content_scopes["POST /contacts"][0]: "/admin/" ends with "/", so it is of a member without a name. Write "/admin".',
      'refs["POST /contacts"][0]: "/b/" ends with "/", so it is of a member without a name. Write "/b".',
      'recipients["POST /contacts"][0]: "/to/" ends with "/", so it is of a member without a name. Write "/to".',
      'recipients["POST /contacts"][1]: "/cc/*/" ends with "/", so it is of a member without a name. Write "/cc/*".',
    ]);
  });

  it('gets a warning for recipients that are not checked, and for grants without a usable connection', () => {
    const text = `${CRM.replace(/ {4}recipients.*\n/, '')}connections: {}\nagents:\n  t: { grants: { crm: { scopes: ["crm:contacts.read"], recipients: ["@a.example"] } } }`;
    expect(warningsOf(text)).toEqual([
      'governance.yaml:11:18: agents.t.grants.crm: "crm" has no connection yet, so calls with this grant are answered platform_not_connected.',
      'governance.yaml:11:56: agents.t.grants.crm.recipients: limits nothing: the manifest of "crm" does not say (under `recipients`) where its calls name who receives.',
    ]);
  });

  it('gets a warning for refs on a platform without a definition of what writes them', () => {
    const grants = (terms: string) =>
      `${CRM}agents:\n  t: { grants: { crm: { scopes: ["crm:contacts.read"], ${terms} } } }`;
    for (const [field, terms] of [
      ['refs', 'refs: ["agent/*"]'],
      ['ref_changes', 'ref_changes: [create]'],
    ])
      expect(warningsOf(grants(terms ?? ''))).toContain(
        `governance.yaml:11:56: agents.t.grants.crm.${field}: refuses all that is not a GET or git: the manifest of "crm" does not say (under \`refs\`) which branches and tags its operations write. To allow some operations, limit the scopes.`,
      );
  });

  it('gets a warning for repositories on a platform whose operations name none', () => {
    const granted = (platforms: string, id: string, scope: string) =>
      warningsOf(
        `platforms:\n  ${platforms}\nagents:\n  t: { grants: { ${id}: { scopes: ["${scope}"], repos: ["acme/*"] } } }`,
      );
    const rest = (operation: string) =>
      `crm: { kind: rest, base_url: "https://c.example", auth: { type: bearer }, scopes: { "crm:read": ["${operation}"] } }`;
    const tools =
      't: { kind: mcp, base_url: "https://m.example/mcp", auth: { type: bearer }, scopes: { "t:a": ["tool a"] } }';
    const refused = (id: string) =>
      expect.stringContaining(
        `.repos: refuses every call: no operation of "${id}" names a repository in its path, as /repos/<owner>/<repo> does, so each is answered repo_not_allowed.`,
      );
    expect(granted(rest('GET /contacts/*'), 'crm', 'crm:read')).toEqual([refused('crm')]);
    expect(granted(tools, 't', 't:a')).toEqual([refused('t')]);
    expect(granted('chat: { use: slack }', 'chat', 'slack:messages.write')).toEqual([refused('chat')]);
    for (const operation of ['GET /**', 'GET /repos/*/*/issues', 'GET /user'])
      expect(granted(rest(operation), 'crm', 'crm:read')).toEqual([]);
    expect(granted('codehost: { use: github }', 'codehost', 'codehost:issues.read')).toEqual([]);
  });

  it('may name any tool of an MCP platform', () => {
    const text =
      'platforms:\n  t: { kind: mcp, base_url: "https://m.example/mcp", auth: { type: bearer }, scopes: { "t:a": ["tool a"] } }\nagents:\n  x: { grants: { t: { scopes: ["t:later"] } } }';
    expect(problemsOf(text)).toEqual([]);
  });

  it('may list up to 64 repositories, each a name or all of an owner', () => {
    const grant = (repos: string[]) =>
      problemsOf(`agents: { t: { grants: { codehost: { scopes: [s], repos: ${JSON.stringify(repos)} } } } }`);
    expect(grant([...Array(60).fill('acme/*'), 'ACME/app', 'a_b/c.d', 'x/.github', 'octo-org/a_b-c'])).toEqual([]);
    const wrong = [
      'acme',
      '*/*',
      'acme/**',
      'acme/a*',
      'acme/../x',
      'acme/..',
      './x',
      'a/b/c',
      '/x',
      'a/',
      'a b/c',
      '',
    ];
    expect(grant(wrong)).toHaveLength(wrong.length);
  });

  it('may list ids of a platform as recipients, together with addresses where the platform has both', () => {
    const text = `platforms: { chat: { use: slack } }
agents: { t: { grants: { chat: { scopes: ["slack:messages.write"], recipients: [C024BE91L, "#general", "@a.example"] } } } }`;
    expect(problemsOf(text)).toEqual([]);
    expect(warningsOf(text)).toEqual([]);
  });

  it('can be given as a document of the program, whose problems have no lines', () => {
    const parsed = governanceOf({ owners: [{ email: 'a@b.example', role: 'boss' }] }, 'the sandbox');
    expect(parsed.ok ? [] : parsed.problems.map(formatProblem)).toEqual([
      expect.stringMatching(/^the sandbox: owners\[0\]\.role: "boss" is not allowed/),
    ]);
    expect(governanceOf({ owners: [{ email: 'a@b.example', role: 'admin' }] }, 'the sandbox').ok).toBe(true);
  });

  it('never makes the parser throw, whatever the text', () => {
    const pieces = fc.constantFrom(
      ...WHOLE.split(/(?<=\s)/),
      '\0',
      '\ud800',
      '&a ',
      '*a',
      '!!x ',
      '---\n',
      '\t',
      '{',
      '[',
      '"',
      '__proto__: ',
      '<<: *a\n',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 60 }), fc.string({ maxLength: 20, unit: 'binary' }), (parts, noise) => {
        const parsed = parseGovernance(parts.join('') + noise, 'g.yaml');
        if (!parsed.ok) expect(parsed.problems.length).toBeGreaterThan(0);
      }),
      { numRuns: sized(100, 300) },
    );
  });
});
