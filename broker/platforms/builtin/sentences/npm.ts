/** Sentences for calls of an npm registry. The name of a scoped package is one segment, or two. */

/** Returns the sentence for both forms of the name. `name`: the placeholder of the name; `next`: the number of the first placeholder after it. */
function both(operation: string, sentence: (name: string, next: number) => string): Record<string, string> {
  const [method = '', path = ''] = operation.split(' ');
  return {
    [`${method} ${path.replace('{}', '*')}`]: sentence('**{1}**', 2),
    [`${method} ${path.replace('{}', '@*/*')}`]: sentence('**{1}/{2}**', 3),
  };
}

export const npmSentences: Record<string, string> = {
  ...both('PUT /{}', (name) => `publish ${name}[, tagged: {/dist-tags}][: *{/description}*]`),
  // npm/cli, workspaces/libnpmpublish and lib/commands/owner.js: both send the package document by this PUT.
  ...both(
    'PUT /{}/-rev/*',
    (name) =>
      `change ${name}: which versions the registry has, or who may publish it[, from now on **{/maintainers/*/name}**]`,
  ),
  ...both('DELETE /{}/-rev/*', (name) => `take ${name} out of the registry, with all versions`),
  ...both('DELETE /{}/-/*/-rev/*', (name, next) => `delete the file **{${next}}** of ${name}`),
  ...both('PUT /-/package/{}/dist-tags/*', (name, next) => `tag a version of ${name} as **{${next}}**`),
  ...both('POST /-/package/{}/dist-tags/*', (name, next) => `tag a version of ${name} as **{${next}}**`),
  ...both('DELETE /-/package/{}/dist-tags/*', (name, next) => `take the tag **{${next}}** from ${name}`),
  ...both(
    'POST /-/package/{}/access',
    (name) =>
      `change who may see and publish ${name}[, access: **{/access}**][, second factor: {/publish_requires_tfa}]`,
  ),
  'POST /-/npm/v1/security/advisories/bulk': 'look for advisories of packages',
  'POST /-/npm/v1/security/audits': 'look for advisories of a tree of packages',
  'POST /-/npm/v1/security/audits/quick': 'look for advisories of a tree of packages, in short',
  'PUT /-/team/*/*/package': 'let the team **{1}:{2}** have[ **{/package}**][, to {/permissions}]',
  'DELETE /-/team/*/*/package': 'take[ **{/package}**] from the team **{1}:{2}**',
  'PUT /-/org/*/user': 'make[ **{/user}**] a member of **{1}**[ as **{/role}**]',
  'DELETE /-/org/*/user': 'remove[ **{/user}**] from **{1}**',
  'PUT /-/org/*/team': 'create the team[ **{/name}**] in **{1}**',
  'DELETE /-/team/*/*': 'delete the team **{2}** of **{1}**',
  'PUT /-/team/*/*/user': 'put[ **{/user}**] into the team **{1}:{2}**',
  'DELETE /-/team/*/*/user': 'take[ **{/user}**] out of the team **{1}:{2}**',
};

export const npmReads: Record<string, string> = {
  'GET /': 'read about the registry',
  'GET /-/ping': 'see whether the registry answers',
  'GET /-/whoami': 'read the name of the connected account',
  'GET /-/npm/v1/user': 'read the connected account',
  'GET /-/npm/v1/tokens': 'list the tokens of the connected account',
  'GET /-/npm/v1/keys': 'list the keys that sign packages',
  'GET /-/v1/search': 'search packages[ for *{?text}*]',
  ...both('GET /{}', (name) => `read package ${name}`),
  ...both('GET /{}/*', (name, next) => `read package ${name}, version **{${next}}**`),
  ...both('GET /{}/-/*', (name, next) => `download **{${next}}** of package ${name}`),
  ...both('GET /{}/-/@*/*', (name, next) => `download **{${next}}/{${next + 1}}** of package ${name}`),
  'GET /download/@*/*/*/*': 'download version **{3}** of package **{1}/{2}**',
  ...both('GET /-/npm/v1/attestations/{}', (name) => `read the attestations of package ${name}`),
  ...both('GET /-/package/{}/dist-tags', (name) => `list the tags of package ${name}`),
  ...both('GET /-/package/{}/access', (name) => `read who may see package ${name}`),
  ...both('GET /-/package/{}/visibility', (name) => `read who may see package ${name}`),
  ...both('GET /-/package/{}/collaborators', (name) => `list who may change package ${name}`),
  'GET /-/org/*/package': 'list the packages of **{1}**',
  'GET /-/user/*/package': 'list the packages of **{1}**',
  'GET /-/team/*/*/package': 'list the packages of the team **{1}:{2}**',
  'GET /-/org/*/user': 'list the members of **{1}**',
  'GET /-/org/*/team': 'list the teams of **{1}**',
  'GET /-/team/*/*/user': 'list the members of the team **{1}:{2}**',
};
