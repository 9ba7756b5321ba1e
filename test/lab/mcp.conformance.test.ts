/**
 * The external conformance suite for MCP servers against POST /lab/mcp, for both eras of the protocol. Checks that a server with three tools cannot pass are
 * listed with the reason; any other failure, and any listed check that passes, fails here.
 */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { ROOT } from '../world/checkout.ts';
import { newFolder } from '../world/stores.ts';
import { givenWorld } from '../world/world.ts';

const SUITE = join(ROOT, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');

/** The suite's checks use tools of its own example server; the lab has three other tools. */
const FOREIGN_TOOL = 'calls a tool of its own example server, which the lab does not have';
const NO_RESOURCES = 'the lab has no resources, and does not declare any';
const NO_PROMPTS = 'the lab has no prompts, and does not declare any';
const NO_COMPLETION = 'the lab has nothing to complete, and does not declare it';
const NO_LOGGING = 'the lab does not declare logging';

/** By scenario, then by check; `*`: all of its checks that fail. */
const NOT_APPLICABLE: Record<string, Record<string, string>> = {
  'logging-set-level': { '*': NO_LOGGING },
  'completion-complete': { '*': NO_COMPLETION },
  'tools-call-simple-text': { '*': FOREIGN_TOOL },
  'tools-call-image': { '*': FOREIGN_TOOL },
  'tools-call-audio': { '*': FOREIGN_TOOL },
  'tools-call-embedded-resource': { '*': FOREIGN_TOOL },
  'tools-call-mixed-content': { '*': FOREIGN_TOOL },
  'tools-call-with-logging': { '*': FOREIGN_TOOL },
  'tools-call-error': { '*': FOREIGN_TOOL },
  'tools-call-with-progress': { '*': FOREIGN_TOOL },
  'tools-call-sampling': { '*': FOREIGN_TOOL },
  'tools-call-elicitation': { '*': FOREIGN_TOOL },
  'json-schema-2020-12': { '*': FOREIGN_TOOL },
  'elicitation-sep1034-defaults': { '*': FOREIGN_TOOL },
  'elicitation-sep1330-enums': { '*': FOREIGN_TOOL },
  'resources-list': { '*': NO_RESOURCES },
  'resources-read-text': { '*': NO_RESOURCES },
  'resources-read-binary': { '*': NO_RESOURCES },
  'resources-templates-read': { '*': NO_RESOURCES },
  'resources-subscribe': { '*': NO_RESOURCES },
  'resources-unsubscribe': { '*': NO_RESOURCES },
  'prompts-list': { '*': NO_PROMPTS },
  'prompts-get-simple': { '*': NO_PROMPTS },
  'prompts-get-with-args': { '*': NO_PROMPTS },
  'prompts-get-embedded-resource': { '*': NO_PROMPTS },
  'prompts-get-with-image': { '*': NO_PROMPTS },
  'http-custom-header-server-validation': { '*': 'no tool of the lab mirrors an argument in a header' },
  'input-required-result-basic-elicitation': { '*': FOREIGN_TOOL },
  'input-required-result-basic-sampling': { '*': FOREIGN_TOOL },
  'input-required-result-basic-list-roots': { '*': FOREIGN_TOOL },
  'input-required-result-request-state': { '*': FOREIGN_TOOL },
  'input-required-result-multiple-input-requests': { '*': FOREIGN_TOOL },
  'input-required-result-multi-round': { '*': FOREIGN_TOOL },
  'input-required-result-non-tool-request': { '*': NO_PROMPTS },
  'input-required-result-result-type': { '*': FOREIGN_TOOL },
  'input-required-result-tampered-state': { '*': FOREIGN_TOOL },
  'input-required-result-capability-check': { '*': FOREIGN_TOOL },
  'server-stateless': {
    'sep-2575-server-rejects-undeclared-capability': FOREIGN_TOOL,
    'sep-2575-missing-capability-http-400': FOREIGN_TOOL,
    'sep-2575-http-server-no-independent-requests-on-stream': FOREIGN_TOOL,
    'sep-2575-server-no-log-without-loglevel': FOREIGN_TOOL,
  },
  caching: {
    'sep-2549-prompts-list-caching-hints': NO_PROMPTS,
    'sep-2549-resources-list-caching-hints': NO_RESOURCES,
    'sep-2549-resources-templates-list-caching-hints': NO_RESOURCES,
  },
};

/** Scenarios that must have passed, so that an empty run fails. */
const PASSES: Record<string, string[]> = {
  '2025-06-18': ['server-initialize', 'ping', 'tools-list'],
  '2025-11-25': ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'],
  '2026-07-28': ['server-stateless', 'tools-list', 'dns-rebinding-protection', 'http-header-validation', 'caching'],
};

const world = givenWorld();

test.each(Object.keys(PASSES))(
  'revision %s: every scenario that applies passes',
  async (revision) => {
    const folder = newFolder();
    const options = [
      '--url',
      `${world.running.baseUrl}/lab/mcp`,
      '--suite',
      'all',
      '--spec-version',
      revision,
      '-o',
      folder,
    ];
    // The suite exits with 1 when any check failed; the failures are in its files.
    await promisify(execFile)(process.execPath, [SUITE, 'server', ...options], { timeout: 90_000 }).catch(
      () => undefined,
    );
    const unexpected: string[] = [];
    const passed = new Map<string, number>();
    for (const entry of readdirSync(folder)) {
      const scenario = /^server-(.*)-\d{4}-\d\d-\d\dT/.exec(entry)![1]!;
      const checks: { id: string; status: string; errorMessage?: string }[] = JSON.parse(
        readFileSync(join(folder, entry, 'checks.json'), 'utf8'),
      );
      const reasons = NOT_APPLICABLE[scenario] ?? {};
      for (const { id, status, errorMessage } of checks) {
        if (status === 'SUCCESS') passed.set(scenario, (passed.get(scenario) ?? 0) + 1);
        if (status === 'FAILURE' && !(reasons['*'] ?? reasons[id]))
          unexpected.push(`${scenario} ${id}: ${errorMessage}`);
      }
      const failed = checks.filter(({ status }) => status === 'FAILURE').map(({ id }) => id);
      for (const id of Object.keys(reasons))
        if (id === '*' ? failed.length === 0 : !failed.includes(id)) unexpected.push(`${scenario} ${id} passes by now`);
    }
    expect(unexpected).toEqual([]);
    for (const scenario of PASSES[revision]!) expect(passed.get(scenario), scenario).toBeGreaterThan(0);
  },
  120_000,
);
