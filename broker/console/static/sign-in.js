// The token stands behind `#`, so it never reached a server or a log; it is taken out of the address at once.
const token = location.hash.slice(1);
history.replaceState(null, '', '/console/sign-in');
const notice = document.getElementById('notice');

async function signIn() {
  if (!token) {
    notice.textContent = 'Open a sign-in link. Make one with: agent-broker owner link';
    return;
  }
  const response = await fetch('/owner/sign-in', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ token }),
  });
  if (response.ok) {
    location.replace('/console');
    return;
  }
  const answer = await response.json().catch(() => ({}));
  notice.textContent = answer.detail ?? 'Signing in failed. Make a new link with: agent-broker owner link';
}

signIn().catch(() => {
  notice.textContent = 'The broker does not answer. Is it still running?';
});
