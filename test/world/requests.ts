/** Calls that many tests make. */

/** Allowed immediately. */
export const READ = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' };

/** Held for an approval under DEMO_RULES. */
export const WRITE = {
  platform: 'demo',
  endpoint: '/items',
  method: 'POST',
  scope: 'demo:write',
  data: { title: 'x' },
};
