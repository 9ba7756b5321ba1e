import { describe, expect, test } from 'vitest';
import { isGitService } from '../../broker/calls/read-call.ts';

const SERVICES = ['info/refs', 'git-upload-pack', 'git-receive-pack', 'git-upload-archive'];

describe('git service endpoints', () => {
  const same = { base_url: 'https://git.example/', git_base_url: 'https://git.example' };

  test.each(SERVICES)('%s below git_base_url is recognised', (service) => {
    for (const path of [`/acme/app.git/${service}`, `/acme/app/${service}`, `/group/sub/app/${service}`])
      expect(isGitService(same, path), path).toBe(true);
    const below = { base_url: 'https://git.example/scm/', git_base_url: 'https://git.example/scm' };
    expect(isGitService(below, `/acme/app/${service}`)).toBe(true);
    const inside = { base_url: 'https://git.example', git_base_url: 'https://git.example/scm/' };
    expect(isGitService(inside, `/scm/acme/app/${service}`)).toBe(true);
    expect(isGitService(inside, `/api/acme/app/${service}`)).toBe(false);
  });

  test.each([
    '/acme/app.git/HEAD',
    '/acme/app.git/objects/info/packs',
    '/acme/app.GIT/INFO/REFS',
    '/acme/app/info/refs/',
    '/acme/app/info/refs;x=1',
    '/acme/app;x/git-receive-pack;y',
    '/acme/app/info%2Frefs',
    '/acme%2Fapp.git%2Fgit-receive-pack',
    '/acme/app.git/info/lfs/objects/batch',
  ])('%s is recognised, as a lenient server would read it', (path) => {
    expect(isGitService(same, path)).toBe(true);
  });

  test('the paths of the /git routes are recognised for any base URL', () => {
    const apart = { base_url: 'https://api.github.com', git_base_url: 'https://github.com' };
    for (const service of SERVICES) expect(isGitService(apart, `/git/acme/app/${service}`)).toBe(true);
    expect(isGitService(apart, '/repos/acme/app/git/refs/heads/main')).toBe(false);
    expect(isGitService(apart, '/repos/acme/app/contents/info/refs')).toBe(false);
    expect(isGitService({ base_url: 'https://git.example' }, '/git/acme/app/info/refs')).toBe(false);
  });

  test('API paths below or beside git_base_url are not recognised', () => {
    const enterprise = { base_url: 'https://ghe.example/api/v3', git_base_url: 'https://ghe.example' };
    for (const path of ['/repos/acme/app', '/repos/acme/app/git/refs', '/repos/acme/app/contents/a.git/info/refs'])
      expect(isGitService(enterprise, path)).toBe(false);
    expect(isGitService(same, '/repos/app/info/refs')).toBe(true);
    const owner = { base_url: 'https://git.example/acme', git_base_url: 'https://git.example' };
    expect(isGitService(owner, '/app.git/info/refs')).toBe(true);
    for (const path of ['/acme/app.git', '/acme/.github/issues', '/acme/app/refs/info'])
      expect(isGitService(same, path)).toBe(false);
  });
});
