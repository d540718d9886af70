// C#'s iterators and async functions, as a reference only. The command line and the output are those of bench/native.h,
// the elements and the sends those of bench/elements.h and bench/sending.h.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading.Tasks;

static class Elements
{
    public static IEnumerable<ulong> Sequence(ulong n)
    {
        for (; n > 0; n--)
            yield return n;
    }

    static ulong Move(int disc, int from, int to)
    {
        return (ulong)disc + ((ulong)from << 8) + ((ulong)to << 16);
    }

    public static IEnumerable<ulong> Hanoi(int disc, int from, int to, int spare)
    {
        if (disc == 0)
            yield break;
        foreach (ulong move in Hanoi(disc - 1, from, spare, to))
            yield return move;
        yield return Move(disc, from, to);
        foreach (ulong move in Hanoi(disc - 1, spare, to, from))
            yield return move;
    }

    public static void HanoiCall(int disc, int from, int to, int spare, Action<ulong> callback)
    {
        if (disc == 0)
            return;
        HanoiCall(disc - 1, from, spare, to, callback);
        callback(Move(disc, from, to));
        HanoiCall(disc - 1, spare, to, from, callback);
    }

    public static ulong Sum(IEnumerable<ulong> elements)
    {
        ulong sum = 0;
        foreach (ulong element in elements)
            sum += element;
        return sum;
    }

    public static ulong SumOfCalls(int discs)
    {
        ulong sum = 0;
        HanoiCall(discs, 'a', 'b', 'c', move => sum += move);
        return sum;
    }
}

// `await new Turn()` puts the caller at the end of a queue.
struct Turn : ICriticalNotifyCompletion
{
    static readonly Queue<Action> waiting = new Queue<Action>();

    public Turn GetAwaiter() { return this; }
    public bool IsCompleted { get { return false; } }
    public void OnCompleted(Action next) { waiting.Enqueue(next); }
    public void UnsafeOnCompleted(Action next) { waiting.Enqueue(next); }
    public void GetResult() { }

    public static void RunAll()
    {
        while (waiting.Count > 0)
            waiting.Dequeue()();
    }
}

class Connection
{
    public const int Senders = 10;
    const long AtOnce = 800;
    readonly long sends;
    long expected, sent;

    Connection(long sends)
    {
        this.sends = sends;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    long SendSome(long data, long size)
    {
        if (data != expected)
            throw new InvalidOperationException("other bytes were sent");
        long n = Math.Min(size, AtOnce);
        expected = data + n;
        sent++;
        return n;
    }

    async Task<long> SendWhenReady(long data, long size)
    {
        await new Turn();
        return SendSome(data, size);
    }

    async Task WriteFully(long data, long size)
    {
        while (size > 0) {
            long n = await SendWhenReady(data, size);
            data += n;
            size -= n;
        }
    }

    public static void RunAll(long number)
    {
        var connections = new Connection[Senders];
        var tasks = new Task[Senders];
        for (int i = 0; i < Senders; i++) {
            connections[i] = new Connection(number / Senders);
            tasks[i] = connections[i].WriteFully(0, connections[i].sends * AtOnce);
        }
        Turn.RunAll();
        for (int i = 0; i < Senders; i++) {
            tasks[i].Wait();
            if (connections[i].sent != connections[i].sends)
                throw new InvalidOperationException("not all was sent");
        }
    }
}

static class Program
{
    [StructLayout(LayoutKind.Sequential)]
    struct Timespec
    {
        public long Seconds, Nanoseconds;
    }

    [DllImport("libc")]
    static extern int clock_gettime(int clock, out Timespec time);

    const int ThreadTime = 3; // CLOCK_THREAD_CPUTIME_ID

    static double Taken(Action work, long rounds)
    {
        Timespec start, end;
        clock_gettime(ThreadTime, out start);
        for (; rounds > 0; rounds--)
            work();
        clock_gettime(ThreadTime, out end);
        return (end.Seconds - start.Seconds) * 1e9 + (end.Nanoseconds - start.Nanoseconds);
    }

    static Action Summing(Func<ulong> sum, ulong wanted)
    {
        return () => {
            if (sum() != wanted)
                throw new InvalidOperationException("other elements came");
        };
    }

    static Action Work(string name, long number)
    {
        int discs = 0;
        while ((1L << discs) - 1 < number)
            discs++;
        switch (name) {
        case "sequence":
            return Summing(() => Elements.Sum(Elements.Sequence((ulong)number)), (ulong)(number * (number + 1) / 2));
        case "hanoi":
            return Summing(() => Elements.Sum(Elements.Hanoi(discs, 'a', 'b', 'c')), Elements.SumOfCalls(discs));
        case "hanoi_call":
            return Summing(() => Elements.SumOfCalls(discs), Elements.SumOfCalls(discs));
        case "write_fully":
            return () => Connection.RunAll(number);
        default:
            throw new ArgumentException("no case " + name);
        }
    }

    static void Main(string[] args)
    {
        long number = long.Parse(args[1]), rounds = 1;
        int samples = int.Parse(args[3]);
        double ns = double.Parse(args[4]) * 1e6;
        Action work = Work(args[0], number);
        double taken;
        while ((taken = Taken(work, rounds)) < ns / 8)
            rounds *= 2;
        rounds = (long)(ns / taken * rounds) + 1;
        for (int i = 0; i < samples; i++)
            Console.WriteLine("{0:F4}", Taken(work, rounds) / rounds / number);
    }
}
