// The setting that makes the identity documents of the organisation's agents public. A confirmation lists what becomes public.
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { Question } from '/console/shell/question.js';

/** @param {{ published: boolean, may: boolean, changed: () => void }} props */
export function Publishing({ published, may, changed }) {
  const [asking, setAsking] = useState(false);
  const words = published ? 'Published' : 'Not published';
  return html`
    <section class="sheet" aria-labelledby="publishing">
      <h2 id="publishing">Identity documents <span class="badge" id="published" data-kind=${published ? 'wait' : ''}>${words}</span></h2>
      <p>Every agent has an identifier that others can look up (a DID). ${
        published
          ? 'Anyone may look up those of this organisation, without signing in.'
          : 'Nobody can look up those of this organisation: a request for one is answered as if the agent did not exist.'
      }</p>
      ${may && html`<div class="buttons"><button type="button" id="publish" onClick=${() => setAsking(true)}>${published ? 'Stop publishing…' : 'Publish…'}</button></div>`}
      ${asking && html`<${Ask} publish=${!published} onClose=${() => setAsking(false)} changed=${changed} />`}
    </section>
  `;
}

/** @param {{ publish: boolean, onClose: () => void, changed: () => void }} props */
function Ask({ publish, onClose, changed }) {
  const change = async () => {
    await ask('POST', '/owner/organisation', { publish_identity_documents: publish });
    return publish ? 'Identity documents are published.' : 'Identity documents are no longer published.';
  };
  const title = publish ? 'Publish identity documents?' : 'Stop publishing identity documents?';
  return html`
    <${Question} title=${title} verb=${publish ? 'Publish' : 'Stop publishing'} id="change" work=${change} onClose=${onClose} onDone=${changed}>
      ${publish ? html`<${WhatOpens} />` : html`<${WhatCloses} />`}
    <//>
  `;
}

const WhatOpens = () => html`
  <p>From the next request on, anyone who knows an agent’s id may, without signing in:</p>
  <ul>
    <li>read its public key, and whether it is active, suspended, or revoked;</li>
    <li>see which agent is the parent of another one;</li>
    <li>ask whether it may use a scope on a platform now (TRQP), and whether it is recognised.</li>
  </ul>
  <p>Nobody learns its name, its owner, this organisation’s name, or what it did. Ids are not listed anywhere. What others have copied
    stays with them.</p>
`;

const WhatCloses = () => html`
  <p>From the next request on, a request for any agent of this organisation, stopped ones included, is answered as if the agent did not exist.
    Copies that others made are not affected, and caches may answer for another minute. Public queries about authorisation (TRQP) are no
    longer answered.</p>
`;
