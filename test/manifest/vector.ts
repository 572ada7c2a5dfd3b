import type { Manifest } from '../../src/core/domain/manifest/manifest.ts';

/** Created once and kept, because the signed format may never change. */
export const VECTOR: Manifest = {
  ledgerId: '018f4c1e-aaaa-7000-8000-000000000001',
  networks: {
    mainnet: {
      prj_01j9zk7v5rfq4bt4n9q1v7h3ce: {
        addresses: ['TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH'],
        maxSurcharge: '0.01',
        policy: 'tail',
        xpubs: [],
      },
      prj_01j9zk7v5rfq4bt4n9q1v7h3cf: {
        addresses: ['TLa2f6VPqDgRE67v1736s7bJ8Ray5wYjU7'],
        maxSurcharge: '0.05',
        policy: 'exact',
        xpubs: [],
      },
    },
  },
  notAfter: '2027-11-23T00:00:00.000Z',
  previous: null,
  serial: 1,
  v: 1,
};

export const VECTOR_HEAD =
  '{"ledgerId":"018f4c1e-aaaa-7000-8000-000000000001","leaves":3,"networks":"3703a9e2d36e130f533638537416c2ac31de1ccb85cd950474cbf6972d19752c","notAfter":"2027-11-23T00:00:00.000Z","previous":null,"root":"5d7e20f2aa2e85507dd0fe6f985cfe9f55a247b6349d20c5195b788f531d2f81","serial":1,"v":1}';

/** Created by OpenSSH's `ssh-keygen -Y sign -f k -n quittance-manifest head`. */
export const SSH_SIGNATURE = `-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgnz+jfzNNOObTguL2E/MNZgIm1p
Bff7yS088pNwUbTbUAAAAScXVpdHRhbmNlLW1hbmlmZXN0AAAAAAAAAAZzaGE1MTIAAABT
AAAAC3NzaC1lZDI1NTE5AAAAQC+z+76xQXDzYVddi57n/v3GmopbFyXP5biDiuYuNQ0Ppn
S5w1TfnU4Hf2x03xlS3sVwycV8bpuj6r4ZSmr8pwI=
-----END SSH SIGNATURE-----
`;

/** The second word of k.pub. */
export const SSH_KEY = 'AAAAC3NzaC1lZDI1NTE5AAAAIJ8/o38zTTjm04Li9hPzDWYCJtaQX3+8ktPPKTcFG021';

/**
 * In the form of a hardware token, for the key of 32 bytes 7: created by a program (PROTOCOL.u2f, PROTOCOL.sshsig) because no token was
 * available, and verified with OpenSSH's `ssh-keygen -Y verify`.
 */
export const TOKEN_SIGNATURE = `-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAAEoAAAAac2stc3NoLWVkMjU1MTlAb3BlbnNzaC5jb20AAAAg6kpsY+
KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iwAAAAEc3NoOgAAABJxdWl0dGFuY2UtbWFu
aWZlc3QAAAAAAAAABnNoYTUxMgAAAGcAAAAac2stc3NoLWVkMjU1MTlAb3BlbnNzaC5jb2
0AAABAP1aDhrqOf7NIY2qME4wgbtdpSnX5G3/fC9GrSRSakJ4dfXsC5tTucRYuz/iZI/Di
GHLnGrfHbSiGmwE3pIZqDQEAAAAF
-----END SSH SIGNATURE-----
`;

/** The second word of its .pub. */
export const TOKEN_KEY =
  'AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIOpKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIsAAAABHNzaDo=';
