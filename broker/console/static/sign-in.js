import { takePlace } from '/console/place.js';

const notice = document.getElementById('notice');

/** The token stands behind `#`, so it never reached a server or a log; it is taken out of the address at once. */
function takeToken() {
  const token = location.hash.slice(1);
  history.replaceState(null, '', '/console/sign-in');
  return token;
}

async function signIn(token) {
  notice.textContent = 'Signing you in…';
  const response = await fetch('/owner/sign-in', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ token }),
  });
  if (response.ok) {
    location.replace(takePlace());
    return;
  }
  const answer = await response.json().catch(() => ({}));
  notice.textContent = answer.detail ?? 'Signing in failed. Make a new link with: agent-broker owner link';
}

function begin() {
  const token = takeToken();
  if (token)
    signIn(token).catch(() => {
      notice.textContent = 'The broker does not answer. Is it still running?';
    });
  else notice.textContent = 'Open a sign-in link. Make one with: agent-broker owner link';
}

// A link that is opened on this very page changes nothing but what stands behind `#`.
addEventListener('hashchange', () => location.hash && begin());
begin();
