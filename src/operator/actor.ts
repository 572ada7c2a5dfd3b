/** The person who asks: the interface, the name (1 to 200 characters, recorded with each change) and the right. */
export type Actor = { kind: 'cli' | 'console' | 'admin'; name: string; role: 'owner' | 'operator' | 'viewer' };
