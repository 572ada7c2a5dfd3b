/** Logs how long each step took. */
export function createSteps(): (what: string) => void {
  let fromMs = performance.now();
  return (what) => {
    const nowMs = performance.now();
    process.stdout.write(`${((nowMs - fromMs) / 1000).toFixed(1).padStart(6)} s  ${what}\n`);
    fromMs = nowMs;
  };
}
