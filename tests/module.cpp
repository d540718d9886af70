/* The module `acorn` (aco/acorn.cppm) in a program that includes no header of the library. module.sh builds it. */
import acorn;
#include <cstdio>

int main()
{
    int sum = 0, seen = 0;
    aco::channel<int> numbers(1);
    aco::mutex mutex;
    auto sender = aco::spawn([&] {
        mutex.lock();
        for (int i = 1; i <= 3; i++)
            numbers.send(i);
        mutex.unlock();
        numbers.close();
        return 7;
    });
    auto receiver = aco::spawn([&] {
        for (int number : numbers)
            sum += number;
        try {
            aco::run(); // in a task
        } catch (const aco::error &) {
            seen++;
        }
    });
    aco::generator<int> squares([](auto &y) {
        for (int i = 1; i <= 3; i++)
            y(i * i);
    });
    for (int square : squares)
        sum += square;
    aco::run();
    receiver.join();
    int result = sender.join();
    std::printf("%d %d %d\n", sum, seen, result);
    return sum == 20 && seen == 1 && result == 7 ? 0 : 1;
}
