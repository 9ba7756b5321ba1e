import { configDefaults, defineConfig } from 'vitest/config';
import { LeftOut } from './test/world/left-out.ts';

/** Crowds, crashes and long walks through a browser. They take half of the time, so that CI runs them, and whoever asks. */
const LONG = [
  'test/approvals/crash.test.ts',
  'test/approvals/page.hostile.test.ts',
  'test/agents/children.cap.test.ts',
  'test/cli/agent.test.ts',
  'test/cli/connect.cli.test.ts',
  'test/oauth-client/crash.test.ts',
  'test/console/access-requests.test.ts',
  'test/console/clients.test.ts',
  'test/console/connections.test.ts',
  'test/console/live.test.ts',
  'test/console/pages.test.ts',
  'test/console/registrations.test.ts',
  'test/console/settings.test.ts',
  'test/console/accessible.test.ts',
  'test/console/many.test.ts',
  'test/console/tools.test.ts',
  'test/approvals/page.accessible.test.ts',
  'test/git/long.test.ts',
  'test/operations/keys.test.ts',
  'test/operations/crash.test.ts',
  'test/mcp/agent-loop.test.ts',
  'test/oauth-server/browser.test.ts',
  'test/remote-mcp/conformance.test.ts',
  'test/oauth-server/crash.test.ts',
  'test/remote-mcp/inspector.test.ts',
  'test/remote-mcp/patience.test.ts',
  'test/remote-mcp/replicas.test.ts',
  'test/remote-mcp/waiting-crash.test.ts',
  'test/mcp/clients.test.ts',
  'test/mcp/errors.test.ts',
  'test/mcp/waiting.test.ts',
  'test/docs/browser.test.ts',
  'test/docs/clients.test.ts',
  'test/lab/mcp.conformance.test.ts',
  'test/auth/oidc.lies.test.ts',
  'test/egress/public-json.test.ts',
  'test/upstream-mcp/conformance.test.ts',
  'test/agents/registration.crash.test.ts',
  'test/agents/registration.stream.test.ts',
];
/** They run only where their variable is set: pictures are for people to look at, and the client programs are 1 GB. */
const ON_DEMAND = [
  ...(process.env.PICTURES ? [] : ['test/console/pictures.test.ts', 'test/console/pictures.many.test.ts']),
  ...(process.env.CLIENT_PROGRAMS ? [] : ['test/cli/client-programs.test.ts']),
];
const asked = process.env.CI || process.env.ALL_TESTS || process.argv.some((word) => word.startsWith('test/'));

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Nothing is mutable at module level, so files share what they import: a fifth of the time went into importing.
    isolate: false,
    globalSetup: ['test/world/build-programs.ts'],
    setupFiles: ['test/world/each-file.ts'],
    reporters: ['default', new LeftOut(asked ? [] : LONG)],
    exclude: [...configDefaults.exclude, ...ON_DEMAND, ...(asked ? [] : LONG)],
    // CI shares its machine with others: a test that hangs is told late there, and none fails for being slow.
    testTimeout: process.env.CI ? 60_000 : 20_000,
    hookTimeout: process.env.CI ? 60_000 : 30_000,
    expect: { poll: { timeout: 10_000 } },
    // Test files start real servers of their own and wait a lot: four of them fill two cores.
    maxWorkers: 4,
  },
});
