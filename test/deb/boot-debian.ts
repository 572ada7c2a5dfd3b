import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { ENVIRONMENT, run } from './bare-debian.ts';

/** Starts systemd as the first process of new namespaces and in its own cgroup. It shares this machine's network and its public devices. */
const BOOT = `
set -e
groups=$(mktemp -d); mount -t cgroup2 none "$groups"; own="$groups/quittance-$$"; mkdir "$own"
echo $$ > "$own/cgroup.procs"
trap 'while grep -q "populated 1" "$own/cgroup.events"; do sleep 0.1; done; find "$own" -depth -type d -exec rmdir {} \\;; umount "$groups"; rmdir "$groups"' EXIT
unshare --mount --pid --ipc --uts --cgroup --fork --kill-child sh -c '
  set -e
  mount --bind "$0" "$0"
  mount -t proc proc "$0/proc"; mount -t sysfs -o ro sysfs "$0/sys"; mount -t cgroup2 none "$0/sys/fs/cgroup"
  for path in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs "$0/$path"; done
  chmod 1777 "$0/tmp"; mkdir "$0/dev/shm"
  for name in null zero full random urandom tty; do touch "$0/dev/$name"; mount --bind "/dev/$name" "$0/dev/$name"; done
  mkdir "$0/dev/pts"; mount -t devpts -o newinstance,ptmxmode=666 devpts "$0/dev/pts"; ln -s pts/ptmx "$0/dev/ptmx"
  cd "$0"; pivot_root . mnt; umount -l mnt
  exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . /lib/systemd/systemd --system --show-status=no
' "$0" & child=$!
echo $$ > "$groups/cgroup.procs"
echo "$child"
# It ends with its standard input.
set +e
cat > /dev/null
kill -KILL "$child"; wait "$child"
`;

export type Booted = {
  /** Runs a command in it as root, and returns the output. */
  inside(...command: string[]): Promise<string>;
};

/** Boots a Debian with systemd until the test ends. Returns a sentence if it can't be booted here. */
export async function bootDebian(path: string): Promise<Booted | string> {
  const child = spawn('sh', ['-c', BOOT, path], { stdio: ['pipe', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  onTestFinished(async () => {
    child.stdin.end();
    await ended;
  });
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  const [line] = await Promise.race([once(child.stdout, 'data'), ended.then(() => [''])]);
  const unshared = String(line).trim();
  const inside = async (...command: string[]) => {
    const init = (await readFile(join('/proc', unshared, 'task', unshared, 'children'), 'utf8')).trim();
    const namespaces = ['--mount', '--pid', '--ipc', '--uts', '--cgroup', '--root', '--wd'];
    return run('nsenter', [`--target=${init}`, ...namespaces, 'env', ...ENVIRONMENT, ...command]);
  };
  const deadlineMs = performance.now() + 60_000;
  for (;;) {
    // "degraded" has its own exit code.
    const state = await inside('systemctl', 'is-system-running').catch(({ stdout = '' }) => String(stdout));
    if (/^(running|degraded)/.test(state)) return { inside };
    if (child.exitCode !== null || performance.now() > deadlineMs)
      return `systemd does not start in namespaces here (${state.trim()}): ${errors.trim()}`;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
